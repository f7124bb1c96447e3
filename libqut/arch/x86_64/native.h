// SPDX-License-Identifier: Apache-2.0
#ifndef QUT_ARCH_X86_64_NATIVE_H
#define QUT_ARCH_X86_64_NATIVE_H

#include "libqut/arch/x86_64/definition.h"

static const struct arch arch_native_arch = ARCH_X86_64_DEFINITION;

enum { ARCH_NATIVE_FP_SLOT = 0 }; // rbp
// A call pushes the return address: it lies there in every frame.
enum { ARCH_NATIVE_RA_OFFSET_BYTES = -8 };
enum { ARCH_NATIVE_FRAME_IS_BELOW_FP = 0 };

static inline uint64_t arch_native_strip(uint64_t pc)
{
    return pc;
}

static inline uint64_t arch_native_vector_bytes(void)
{
    return 0;
}

enum { ARCH_NATIVE_HAS_COUNTER = 1 };
#define ARCH_NATIVE_COUNTER_CLOCK "tsc"

static inline uint64_t arch_native_counter(void)
{
    return __builtin_ia32_rdtsc();
}

// One instruction, without the lock that other writers would need.
#define ARCH_NATIVE_HAS_ADD 1
static inline void arch_native_add(uint64_t *counter, uint64_t amount)
{
    __asm__ volatile("addq %1, %0" : "+m"(*counter) : "er"(amount) : "cc");
}

#endif
