// SPDX-License-Identifier: Apache-2.0
// arm as its C library names it: where each register is, by DWARF number.
#ifndef TESTS_UNIT_LIBQUT_ARCH_NATIVE_ARM_NATIVE_CASE_H
#define TESTS_UNIT_LIBQUT_ARCH_NATIVE_ARM_NATIVE_CASE_H

#include <stddef.h>
#include <sys/user.h>
#include <ucontext.h>

#include "libqut/arch/arch.h"

static const uint16_t native_core_offsets[] = {
    offsetof(struct user_regs, uregs[0]),  offsetof(struct user_regs, uregs[1]),  offsetof(struct user_regs, uregs[2]),
    offsetof(struct user_regs, uregs[3]),  offsetof(struct user_regs, uregs[4]),  offsetof(struct user_regs, uregs[5]),
    offsetof(struct user_regs, uregs[6]),  offsetof(struct user_regs, uregs[7]),  offsetof(struct user_regs, uregs[8]),
    offsetof(struct user_regs, uregs[9]),  offsetof(struct user_regs, uregs[10]), offsetof(struct user_regs, uregs[11]),
    offsetof(struct user_regs, uregs[12]), offsetof(struct user_regs, uregs[13]), offsetof(struct user_regs, uregs[14]),
    offsetof(struct user_regs, uregs[15]),
};
enum { NATIVE_CORE_PC = offsetof(struct user_regs, uregs[15]), NATIVE_CORE_BYTES = sizeof(struct user_regs) };

static const uint16_t native_ucontext_offsets[] = {
    offsetof(ucontext_t, uc_mcontext.arm_r0),  offsetof(ucontext_t, uc_mcontext.arm_r1),
    offsetof(ucontext_t, uc_mcontext.arm_r2),  offsetof(ucontext_t, uc_mcontext.arm_r3),
    offsetof(ucontext_t, uc_mcontext.arm_r4),  offsetof(ucontext_t, uc_mcontext.arm_r5),
    offsetof(ucontext_t, uc_mcontext.arm_r6),  offsetof(ucontext_t, uc_mcontext.arm_r7),
    offsetof(ucontext_t, uc_mcontext.arm_r8),  offsetof(ucontext_t, uc_mcontext.arm_r9),
    offsetof(ucontext_t, uc_mcontext.arm_r10), offsetof(ucontext_t, uc_mcontext.arm_fp),
    offsetof(ucontext_t, uc_mcontext.arm_ip),  offsetof(ucontext_t, uc_mcontext.arm_sp),
    offsetof(ucontext_t, uc_mcontext.arm_lr),  offsetof(ucontext_t, uc_mcontext.arm_pc),
};
enum { NATIVE_UCONTEXT_PC = offsetof(ucontext_t, uc_mcontext.arm_pc) };

enum {
    NATIVE_CALL_PUSH_BYTES = 0, // what a call pushes
    // Whether the kernel has a trampoline of its own while the C library brings another:
    NATIVE_KERNEL_RETURNS_PLAIN = 1,   // for handlers without SA_SIGINFO
    NATIVE_KERNEL_RETURNS_CONTEXT = 1, // for handlers with it
};

static inline uint64_t native_sign(uint64_t pc)
{
    return pc;
}

#endif
