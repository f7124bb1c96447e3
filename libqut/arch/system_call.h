// SPDX-License-Identifier: Apache-2.0
// The instruction that enters the kernel, as data: whether a thread was interrupted right behind one, and what the call
// returned.
#ifndef QUT_ARCH_SYSTEM_CALL_H
#define QUT_ARCH_SYSTEM_CALL_H

#include "libqut/arch/arch.h"

enum { QUT_SYSTEM_CALL_BYTES = 4 };

// DWARF number of the register that holds what it returned.
unsigned qut_arch_result_register(const struct qut_arch *arch);
// Whether one ends where these bytes do. Signal-safe.
bool qut_arch_is_system_call(const struct qut_arch *arch, const uint8_t bytes[QUT_SYSTEM_CALL_BYTES]);
// How long the one is that begins where these bytes do; 0: none does. Signal-safe.
unsigned qut_arch_system_call_bytes(const struct qut_arch *arch, const uint8_t bytes[QUT_SYSTEM_CALL_BYTES]);

#endif
