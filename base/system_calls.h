// SPDX-License-Identifier: Apache-2.0
// Names of Linux system calls, by number, of every architecture that traces come from.
#ifndef BASE_SYSTEM_CALLS_H
#define BASE_SYSTEM_CALLS_H

#include <stdint.h>

// `arch`: enum qut_arch_id. NULL: none that we know.
const char *base_system_call(unsigned arch, uint64_t number);

#endif
