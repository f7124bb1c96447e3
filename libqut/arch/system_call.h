// SPDX-License-Identifier: Apache-2.0
// The instruction that enters the kernel: whether a thread was interrupted right behind one.
#ifndef QUT_ARCH_SYSTEM_CALL_H
#define QUT_ARCH_SYSTEM_CALL_H

#include "libqut/arch/arch.h"

// Whether one ends where these bytes do. Signal-safe.
bool arch_is_system_call(const struct arch *arch, const uint8_t bytes[ARCH_SYSTEM_CALL_BYTES]);
// How long the one is that begins where these bytes do; 0: none does. Signal-safe.
unsigned arch_system_call_bytes(const struct arch *arch, const uint8_t bytes[ARCH_SYSTEM_CALL_BYTES]);

#endif
