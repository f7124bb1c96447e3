// SPDX-License-Identifier: Apache-2.0
// riscv64 as its C library names it: where each register is, by DWARF number.
#ifndef TESTS_UNIT_LIBQUT_ARCH_NATIVE_RISCV64_NATIVE_CASE_H
#define TESTS_UNIT_LIBQUT_ARCH_NATIVE_RISCV64_NATIVE_CASE_H

#include <asm/ptrace.h>
#include <stddef.h>
#include <ucontext.h>

#include "libqut/arch/arch.h"

static const uint16_t native_core_offsets[] = {
    ARCH_NOT_KEPT,
    offsetof(struct user_regs_struct, ra),
    offsetof(struct user_regs_struct, sp),
    offsetof(struct user_regs_struct, gp),
    offsetof(struct user_regs_struct, tp),
    offsetof(struct user_regs_struct, t0),
    offsetof(struct user_regs_struct, t1),
    offsetof(struct user_regs_struct, t2),
    offsetof(struct user_regs_struct, s0),
    offsetof(struct user_regs_struct, s1),
    offsetof(struct user_regs_struct, a0),
    offsetof(struct user_regs_struct, a1),
    offsetof(struct user_regs_struct, a2),
    offsetof(struct user_regs_struct, a3),
    offsetof(struct user_regs_struct, a4),
    offsetof(struct user_regs_struct, a5),
    offsetof(struct user_regs_struct, a6),
    offsetof(struct user_regs_struct, a7),
    offsetof(struct user_regs_struct, s2),
    offsetof(struct user_regs_struct, s3),
    offsetof(struct user_regs_struct, s4),
    offsetof(struct user_regs_struct, s5),
    offsetof(struct user_regs_struct, s6),
    offsetof(struct user_regs_struct, s7),
    offsetof(struct user_regs_struct, s8),
    offsetof(struct user_regs_struct, s9),
    offsetof(struct user_regs_struct, s10),
    offsetof(struct user_regs_struct, s11),
    offsetof(struct user_regs_struct, t3),
    offsetof(struct user_regs_struct, t4),
    offsetof(struct user_regs_struct, t5),
    offsetof(struct user_regs_struct, t6),
};
enum { NATIVE_CORE_PC = offsetof(struct user_regs_struct, pc), NATIVE_CORE_BYTES = sizeof(struct user_regs_struct) };

static const uint16_t native_ucontext_offsets[] = {
    ARCH_NOT_KEPT,
    offsetof(ucontext_t, uc_mcontext.__gregs[1]),
    offsetof(ucontext_t, uc_mcontext.__gregs[2]),
    offsetof(ucontext_t, uc_mcontext.__gregs[3]),
    offsetof(ucontext_t, uc_mcontext.__gregs[4]),
    offsetof(ucontext_t, uc_mcontext.__gregs[5]),
    offsetof(ucontext_t, uc_mcontext.__gregs[6]),
    offsetof(ucontext_t, uc_mcontext.__gregs[7]),
    offsetof(ucontext_t, uc_mcontext.__gregs[8]),
    offsetof(ucontext_t, uc_mcontext.__gregs[9]),
    offsetof(ucontext_t, uc_mcontext.__gregs[10]),
    offsetof(ucontext_t, uc_mcontext.__gregs[11]),
    offsetof(ucontext_t, uc_mcontext.__gregs[12]),
    offsetof(ucontext_t, uc_mcontext.__gregs[13]),
    offsetof(ucontext_t, uc_mcontext.__gregs[14]),
    offsetof(ucontext_t, uc_mcontext.__gregs[15]),
    offsetof(ucontext_t, uc_mcontext.__gregs[16]),
    offsetof(ucontext_t, uc_mcontext.__gregs[17]),
    offsetof(ucontext_t, uc_mcontext.__gregs[18]),
    offsetof(ucontext_t, uc_mcontext.__gregs[19]),
    offsetof(ucontext_t, uc_mcontext.__gregs[20]),
    offsetof(ucontext_t, uc_mcontext.__gregs[21]),
    offsetof(ucontext_t, uc_mcontext.__gregs[22]),
    offsetof(ucontext_t, uc_mcontext.__gregs[23]),
    offsetof(ucontext_t, uc_mcontext.__gregs[24]),
    offsetof(ucontext_t, uc_mcontext.__gregs[25]),
    offsetof(ucontext_t, uc_mcontext.__gregs[26]),
    offsetof(ucontext_t, uc_mcontext.__gregs[27]),
    offsetof(ucontext_t, uc_mcontext.__gregs[28]),
    offsetof(ucontext_t, uc_mcontext.__gregs[29]),
    offsetof(ucontext_t, uc_mcontext.__gregs[30]),
    offsetof(ucontext_t, uc_mcontext.__gregs[31]),
};
enum { NATIVE_UCONTEXT_PC = offsetof(ucontext_t, uc_mcontext.__gregs[0]) };

enum {
    NATIVE_CALL_PUSH_BYTES = 0, // what a call pushes
    // Whether the kernel has a trampoline of its own while the C library brings another:
    NATIVE_KERNEL_RETURNS_PLAIN = 0,   // for handlers without SA_SIGINFO
    NATIVE_KERNEL_RETURNS_CONTEXT = 0, // for handlers with it
};

static inline uint64_t native_sign(uint64_t pc)
{
    return pc;
}

#endif
