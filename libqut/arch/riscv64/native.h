// SPDX-License-Identifier: Apache-2.0
#ifndef QUT_ARCH_RISCV64_NATIVE_H
#define QUT_ARCH_RISCV64_NATIVE_H

#include "libqut/arch/riscv64/definition.h"

static const struct arch arch_native_arch = ARCH_RISCV64_DEFINITION;

enum { ARCH_NATIVE_FP_SLOT = 0 };           // s0
enum { ARCH_NATIVE_RA_OFFSET_BYTES = 0 };   // rules say
enum { ARCH_NATIVE_FRAME_IS_BELOW_FP = 1 }; // s0 is the cfa

static inline uint64_t arch_native_strip(uint64_t pc)
{
    return pc;
}

static inline uint64_t arch_native_vector_bytes(void)
{
    uint64_t bytes;
    __asm__ volatile("csrr %0, 0xc22" : "=r"(bytes)); // vlenb, by number: not every assembler has the name
    return bytes;
}

enum { ARCH_NATIVE_HAS_COUNTER = 1 };
#define ARCH_NATIVE_COUNTER_CLOCK "riscv_clocksource"

static inline uint64_t arch_native_counter(void)
{
    uint64_t count;
    __asm__ volatile("csrr %0, 0xc01" : "=r"(count)); // time
    return count;
}

#endif
