// SPDX-License-Identifier: Apache-2.0
// x86_64 as its C library names it: where each register is, by DWARF number.
#ifndef TESTS_UNIT_LIBQUT_ARCH_NATIVE_X86_64_NATIVE_CASE_H
#define TESTS_UNIT_LIBQUT_ARCH_NATIVE_X86_64_NATIVE_CASE_H

#include <stddef.h>
#include <sys/user.h>
#include <ucontext.h>

#include "libqut/arch/arch.h"

static const uint16_t native_core_offsets[] = {
    offsetof(struct user_regs_struct, rax),
    offsetof(struct user_regs_struct, rdx),
    offsetof(struct user_regs_struct, rcx),
    offsetof(struct user_regs_struct, rbx),
    offsetof(struct user_regs_struct, rsi),
    offsetof(struct user_regs_struct, rdi),
    offsetof(struct user_regs_struct, rbp),
    offsetof(struct user_regs_struct, rsp),
    offsetof(struct user_regs_struct, r8),
    offsetof(struct user_regs_struct, r9),
    offsetof(struct user_regs_struct, r10),
    offsetof(struct user_regs_struct, r11),
    offsetof(struct user_regs_struct, r12),
    offsetof(struct user_regs_struct, r13),
    offsetof(struct user_regs_struct, r14),
    offsetof(struct user_regs_struct, r15),
    ARCH_NOT_KEPT,
};
enum { NATIVE_CORE_PC = offsetof(struct user_regs_struct, rip), NATIVE_CORE_BYTES = sizeof(struct user_regs_struct) };

static const uint16_t native_ucontext_offsets[] = {
    offsetof(ucontext_t, uc_mcontext.gregs[REG_RAX]),
    offsetof(ucontext_t, uc_mcontext.gregs[REG_RDX]),
    offsetof(ucontext_t, uc_mcontext.gregs[REG_RCX]),
    offsetof(ucontext_t, uc_mcontext.gregs[REG_RBX]),
    offsetof(ucontext_t, uc_mcontext.gregs[REG_RSI]),
    offsetof(ucontext_t, uc_mcontext.gregs[REG_RDI]),
    offsetof(ucontext_t, uc_mcontext.gregs[REG_RBP]),
    offsetof(ucontext_t, uc_mcontext.gregs[REG_RSP]),
    offsetof(ucontext_t, uc_mcontext.gregs[REG_R8]),
    offsetof(ucontext_t, uc_mcontext.gregs[REG_R9]),
    offsetof(ucontext_t, uc_mcontext.gregs[REG_R10]),
    offsetof(ucontext_t, uc_mcontext.gregs[REG_R11]),
    offsetof(ucontext_t, uc_mcontext.gregs[REG_R12]),
    offsetof(ucontext_t, uc_mcontext.gregs[REG_R13]),
    offsetof(ucontext_t, uc_mcontext.gregs[REG_R14]),
    offsetof(ucontext_t, uc_mcontext.gregs[REG_R15]),
    ARCH_NOT_KEPT,
};
enum { NATIVE_UCONTEXT_PC = offsetof(ucontext_t, uc_mcontext.gregs[REG_RIP]) };

enum {
    NATIVE_CALL_PUSH_BYTES = 8, // what a call pushes
    // Whether the kernel has a trampoline of its own while the C library brings another:
    NATIVE_KERNEL_RETURNS_PLAIN = 0,   // for handlers without SA_SIGINFO
    NATIVE_KERNEL_RETURNS_CONTEXT = 0, // for handlers with it
};

static inline uint64_t native_sign(uint64_t pc)
{
    return pc;
}

#endif
