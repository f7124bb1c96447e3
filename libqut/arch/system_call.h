// SPDX-License-Identifier: Apache-2.0
// The instruction that enters the kernel: whether a thread was interrupted right behind one.
#ifndef QUT_ARCH_SYSTEM_CALL_H
#define QUT_ARCH_SYSTEM_CALL_H

#include <stddef.h>

#include "libqut/arch/arch.h"

// Whether one ends where these bytes do. Signal-safe.
bool arch_is_system_call(const struct arch *arch, const uint8_t bytes[ARCH_SYSTEM_CALL_BYTES]);
// How long the one is that begins where these bytes do; 0: none does. Signal-safe.
unsigned arch_system_call_bytes(const struct arch *arch, const uint8_t bytes[ARCH_SYSTEM_CALL_BYTES]);

enum { ARCH_CALL_CODE_BYTES = 16, ARCH_CALL_NUMBER_MOST = 0xfff };
// The number of the call behind which a thread is: of a register that still has it; on x86, where the result took its
// place, of the instruction that put it there, looked for in the code that ends behind the call. `code` has code_bytes
// bytes. -1: not known. Signal-safe.
long arch_call_behind(const struct arch *arch, uint64_t number_register, const uint8_t *code, size_t code_bytes);

#endif
