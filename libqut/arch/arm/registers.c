// SPDX-License-Identifier: Apache-2.0
#include "libqut/arch/arm/definition.h"

const char *const arch_arm_register_names[] = {"r0", "r1", "r2",  "r3",  "r4",  "r5", "r6", "r7",
                                               "r8", "r9", "r10", "r11", "r12", "sp", "lr", "pc"};

const struct arch arch_arm = ARCH_ARM_DEFINITION;

// Linux: struct pt_regs. r0 ... r15 cpsr orig_r0.
const struct arch_register_layout arch_arm_core_registers = {
    .size_bytes = 18 * 4,
    .word_bytes = 4,
    .pc_offset = 15 * 4,
    .reg_offset = {0 * 4, 1 * 4, 2 * 4, 3 * 4, 4 * 4, 5 * 4, 6 * 4, 7 * 4, 8 * 4, 9 * 4, 10 * 4, 11 * 4, 12 * 4, 13 * 4,
                   14 * 4, 15 * 4, [16 ... ARCH_REGISTERS_MAX - 1] = ARCH_NOT_KEPT},
};

enum { REGISTERS = 20 + 3 * 4 }; // behind uc_flags, uc_link, uc_stack; trap_no, error_code, oldmask

// Linux: struct sigcontext. r0 ... r15 cpsr fault_address.
const struct arch_register_layout arch_arm_ucontext_registers = {
    .size_bytes = REGISTERS + 16 * 4,
    .word_bytes = 4,
    .pc_offset = REGISTERS + 15 * 4,
    .reg_offset = {REGISTERS + 0 * 4, REGISTERS + 1 * 4, REGISTERS + 2 * 4, REGISTERS + 3 * 4, REGISTERS + 4 * 4,
                   REGISTERS + 5 * 4, REGISTERS + 6 * 4, REGISTERS + 7 * 4, REGISTERS + 8 * 4, REGISTERS + 9 * 4,
                   REGISTERS + 10 * 4, REGISTERS + 11 * 4, REGISTERS + 12 * 4, REGISTERS + 13 * 4, REGISTERS + 14 * 4,
                   REGISTERS + 15 * 4, [16 ... ARCH_REGISTERS_MAX - 1] = ARCH_NOT_KEPT},
};
