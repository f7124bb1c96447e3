// SPDX-License-Identifier: Apache-2.0
#ifndef QUT_ARCH_AARCH64_NATIVE_H
#define QUT_ARCH_AARCH64_NATIVE_H

#include "libqut/arch/aarch64/definition.h"

static const struct arch arch_native_arch = ARCH_AARCH64_DEFINITION;

enum { ARCH_NATIVE_FP_SLOT = 0 }; // x29

enum { ARCH_NATIVE_RA_OFFSET_BYTES = 0 }; // rules say
enum { ARCH_NATIVE_FRAME_IS_BELOW_FP = 0 };

// xpaclri in its hint encoding: where there are no signatures, it does nothing.
static inline uint64_t arch_native_strip(uint64_t pc)
{
    register uint64_t x30 __asm__("x30") = pc;
    __asm__("hint #7" : "+r"(x30));
    return x30;
}

static inline uint64_t arch_native_vector_bytes(void)
{
    return 0;
}

enum { ARCH_NATIVE_HAS_COUNTER = 1 };
#define ARCH_NATIVE_COUNTER_CLOCK "arch_sys_counter"

static inline uint64_t arch_native_counter(void)
{
    uint64_t count;
    __asm__ volatile("mrs %0, cntvct_el0" : "=r"(count));
    return count;
}

#endif
