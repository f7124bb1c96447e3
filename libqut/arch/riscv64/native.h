// SPDX-License-Identifier: Apache-2.0
#ifndef QUT_ARCH_RISCV64_NATIVE_H
#define QUT_ARCH_RISCV64_NATIVE_H

#include "libqut/arch/riscv64/definition.h"

static const struct qut_arch qut_native_arch = QUT_ARCH_RISCV64_DEFINITION;

enum { QUT_NATIVE_FP_SLOT = 0 };           // s0
enum { QUT_NATIVE_RA_OFFSET_BYTES = 0 };   // rules say
enum { QUT_NATIVE_FRAME_IS_BELOW_FP = 1 }; // s0 is the cfa

static inline uint64_t qut_native_strip(uint64_t pc)
{
    return pc;
}

static inline uint64_t qut_native_vector_bytes(void)
{
    uint64_t bytes;
    __asm__ volatile("csrr %0, 0xc22" : "=r"(bytes)); // vlenb, by number: not every assembler has the name
    return bytes;
}

enum { QUT_NATIVE_HAS_COUNTER = 1 };
#define QUT_NATIVE_COUNTER_CLOCK "riscv_clocksource"

static inline uint64_t qut_native_counter(void)
{
    uint64_t count;
    __asm__ volatile("csrr %0, 0xc01" : "=r"(count)); // time
    return count;
}

#endif
