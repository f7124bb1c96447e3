// SPDX-License-Identifier: Apache-2.0
// An ELF file as the loader has it in memory.
#ifndef TESTS_UNIT_QUTC_PROVIDE_MAPPED_H
#define TESTS_UNIT_QUTC_PROVIDE_MAPPED_H

#include "base/cursor_inline.h"

// What lies outside of every loadable segment: cut off at the end (as far as it is at the end) and zero in between, or
// all there but filled with a byte.
enum { MAPPED_CUT = -1 };

// Allocated; size 0 where the file is no ELF file.
struct base_bytes mapped_image(struct base_bytes file, int rest);

#endif
