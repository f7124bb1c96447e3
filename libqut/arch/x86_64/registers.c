// SPDX-License-Identifier: Apache-2.0
#include "libqut/arch/x86_64/definition.h"

const char *const arch_x86_64_register_names[] = {"rax", "rdx", "rcx", "rbx", "rsi", "rdi", "rbp", "rsp", "r8",
                                                  "r9",  "r10", "r11", "r12", "r13", "r14", "r15", "rip"};

const struct arch arch_x86_64 = ARCH_X86_64_DEFINITION;

// Linux: struct user_regs_struct. Words in the order r15 r14 r13 r12 rbp rbx r11 r10 r9 r8 rax rcx rdx rsi rdi orig_rax
// rip cs eflags rsp ss ...
const struct arch_register_layout arch_x86_64_core_registers = {
    .size_bytes = 27 * 8,
    .word_bytes = 8,
    .pc_offset = 16 * 8,
    .reg_offset = {10 * 8, 12 * 8, 11 * 8, 5 * 8, 13 * 8, 14 * 8, 4 * 8, 19 * 8, 9 * 8, 8 * 8, 7 * 8, 6 * 8, 3 * 8,
                   2 * 8, 1 * 8, 0 * 8, [16 ... ARCH_REGISTERS_MAX - 1] = ARCH_NOT_KEPT},
};

enum { UC_MCONTEXT = 40 }; // behind uc_flags, uc_link, uc_stack

// Linux: struct sigcontext. Words in the order r8 ... r15 rdi rsi rbp rbx rdx rax rcx rsp rip.
const struct arch_register_layout arch_x86_64_ucontext_registers = {
    .size_bytes = UC_MCONTEXT + 17 * 8,
    .word_bytes = 8,
    .pc_offset = UC_MCONTEXT + 16 * 8,
    .reg_offset = {UC_MCONTEXT + 13 * 8, UC_MCONTEXT + 12 * 8, UC_MCONTEXT + 14 * 8, UC_MCONTEXT + 11 * 8,
                   UC_MCONTEXT + 9 * 8, UC_MCONTEXT + 8 * 8, UC_MCONTEXT + 10 * 8, UC_MCONTEXT + 15 * 8,
                   UC_MCONTEXT + 0 * 8, UC_MCONTEXT + 1 * 8, UC_MCONTEXT + 2 * 8, UC_MCONTEXT + 3 * 8,
                   UC_MCONTEXT + 4 * 8, UC_MCONTEXT + 5 * 8, UC_MCONTEXT + 6 * 8, UC_MCONTEXT + 7 * 8,
                   [16 ... ARCH_REGISTERS_MAX - 1] = ARCH_NOT_KEPT},
};
