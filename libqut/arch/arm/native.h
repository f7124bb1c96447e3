// SPDX-License-Identifier: Apache-2.0
#ifndef QUT_ARCH_ARM_NATIVE_H
#define QUT_ARCH_ARM_NATIVE_H

#include "libqut/arch/arm/definition.h"

static const struct arch arch_native_arch = ARCH_ARM_DEFINITION;

// Thumb code has its frames in r7, Arm code in r11.
#ifdef __thumb__
enum { ARCH_NATIVE_FP_SLOT = 1 };
#else
enum { ARCH_NATIVE_FP_SLOT = 0 };
#endif
enum { ARCH_NATIVE_RA_OFFSET_BYTES = 0 }; // rules say
enum { ARCH_NATIVE_FRAME_IS_BELOW_FP = 0 };

static inline uint64_t arch_native_strip(uint64_t pc)
{
    return pc;
}

static inline uint64_t arch_native_vector_bytes(void)
{
    return 0;
}

// Its generic timer is not there on each of them.
enum { ARCH_NATIVE_HAS_COUNTER = 0 };
#define ARCH_NATIVE_COUNTER_CLOCK ""

static inline uint64_t arch_native_counter(void)
{
    return 0;
}

#endif
