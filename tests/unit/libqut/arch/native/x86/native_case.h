// SPDX-License-Identifier: Apache-2.0
// x86 as its C library names it: where each register is, by DWARF number.
#ifndef TESTS_UNIT_LIBQUT_ARCH_NATIVE_X86_NATIVE_CASE_H
#define TESTS_UNIT_LIBQUT_ARCH_NATIVE_X86_NATIVE_CASE_H

#include <stddef.h>
#include <sys/user.h>
#include <ucontext.h>

#include "libqut/arch/arch.h"

static const uint16_t native_core_offsets[] = {
    offsetof(struct user_regs_struct, eax),
    offsetof(struct user_regs_struct, ecx),
    offsetof(struct user_regs_struct, edx),
    offsetof(struct user_regs_struct, ebx),
    offsetof(struct user_regs_struct, esp),
    offsetof(struct user_regs_struct, ebp),
    offsetof(struct user_regs_struct, esi),
    offsetof(struct user_regs_struct, edi),
    ARCH_NOT_KEPT,
};
enum { NATIVE_CORE_PC = offsetof(struct user_regs_struct, eip), NATIVE_CORE_BYTES = sizeof(struct user_regs_struct) };

static const uint16_t native_ucontext_offsets[] = {
    offsetof(ucontext_t, uc_mcontext.gregs[REG_EAX]),
    offsetof(ucontext_t, uc_mcontext.gregs[REG_ECX]),
    offsetof(ucontext_t, uc_mcontext.gregs[REG_EDX]),
    offsetof(ucontext_t, uc_mcontext.gregs[REG_EBX]),
    offsetof(ucontext_t, uc_mcontext.gregs[REG_ESP]),
    offsetof(ucontext_t, uc_mcontext.gregs[REG_EBP]),
    offsetof(ucontext_t, uc_mcontext.gregs[REG_ESI]),
    offsetof(ucontext_t, uc_mcontext.gregs[REG_EDI]),
    ARCH_NOT_KEPT,
};
enum { NATIVE_UCONTEXT_PC = offsetof(ucontext_t, uc_mcontext.gregs[REG_EIP]) };

enum {
    NATIVE_CALL_PUSH_BYTES = 4, // what a call pushes
    // Whether the kernel has a trampoline of its own while the C library brings another:
    NATIVE_KERNEL_RETURNS_PLAIN = 1,   // for handlers without SA_SIGINFO
    NATIVE_KERNEL_RETURNS_CONTEXT = 0, // for handlers with it: qemu-i386 7.2 returns to 8 bytes before its own
};

static inline uint64_t native_sign(uint64_t pc)
{
    return pc;
}

#endif
