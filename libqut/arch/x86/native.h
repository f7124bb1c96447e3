// SPDX-License-Identifier: Apache-2.0
#ifndef QUT_ARCH_X86_NATIVE_H
#define QUT_ARCH_X86_NATIVE_H

#include "libqut/arch/x86/definition.h"

static const struct qut_arch qut_native_arch = QUT_ARCH_X86_DEFINITION;

enum { QUT_NATIVE_FP_SLOT = 0 }; // ebp
// A call pushes the return address: it lies there in every frame.
enum { QUT_NATIVE_RA_OFFSET_BYTES = -4 };
enum { QUT_NATIVE_FRAME_IS_BELOW_FP = 0 };

static inline uint64_t qut_native_strip(uint64_t pc)
{
    return pc;
}

static inline uint64_t qut_native_vector_bytes(void)
{
    return 0;
}

enum { QUT_NATIVE_HAS_COUNTER = 1 };
#define QUT_NATIVE_COUNTER_CLOCK "tsc"

static inline uint64_t qut_native_counter(void)
{
    return __builtin_ia32_rdtsc();
}

#endif
