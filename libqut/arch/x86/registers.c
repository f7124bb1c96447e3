// SPDX-License-Identifier: Apache-2.0
#include "libqut/arch/x86/definition.h"

const char *const arch_x86_register_names[] = {"eax", "ecx", "edx", "ebx", "esp", "ebp", "esi", "edi", "eip"};

const struct arch arch_x86 = ARCH_X86_DEFINITION;

// Linux: struct user_regs_struct. Words in the order ebx ecx edx esi edi ebp eax ds es fs gs orig_eax eip cs eflags esp
// ss.
const struct arch_register_layout arch_x86_core_registers = {
    .size_bytes = 17 * 4,
    .word_bytes = 4,
    .pc_offset = 12 * 4,
    .reg_offset = {6 * 4, 1 * 4, 2 * 4, 0 * 4, 15 * 4, 5 * 4, 3 * 4, 4 * 4,
                   [8 ... ARCH_REGISTERS_MAX - 1] = ARCH_NOT_KEPT},
};

enum { REGISTERS = 20 }; // behind uc_flags, uc_link, uc_stack

// Linux: struct sigcontext. Words in the order gs fs es ds edi esi ebp esp ebx edx ecx eax trapno err eip. The first
// esp is the interrupted one; esp_at_signal, behind eflags, is the same.
const struct arch_register_layout arch_x86_ucontext_registers = {
    .size_bytes = REGISTERS + 15 * 4,
    .word_bytes = 4,
    .pc_offset = REGISTERS + 14 * 4,
    .reg_offset = {REGISTERS + 11 * 4, REGISTERS + 10 * 4, REGISTERS + 9 * 4, REGISTERS + 8 * 4, REGISTERS + 7 * 4,
                   REGISTERS + 6 * 4, REGISTERS + 5 * 4, REGISTERS + 4 * 4,
                   [8 ... ARCH_REGISTERS_MAX - 1] = ARCH_NOT_KEPT},
};
