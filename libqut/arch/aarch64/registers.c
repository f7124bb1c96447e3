// SPDX-License-Identifier: Apache-2.0
#include "libqut/arch/aarch64/definition.h"

const char *const arch_aarch64_register_names[] = {
    "x0",  "x1",  "x2",  "x3",  "x4",  "x5",  "x6",  "x7",  "x8",  "x9",  "x10", "x11", "x12", "x13", "x14", "x15",
    "x16", "x17", "x18", "x19", "x20", "x21", "x22", "x23", "x24", "x25", "x26", "x27", "x28", "x29", "x30", "sp"};

const struct arch arch_aarch64 = ARCH_AARCH64_DEFINITION;

// Linux: struct user_pt_regs. x0 ... x30 sp pc pstate.
const struct arch_register_layout arch_aarch64_core_registers = {
    .size_bytes = 34 * 8,
    .word_bytes = 8,
    .pc_offset = 32 * 8,
    .reg_offset = {0 * 8,  1 * 8,  2 * 8,
                   3 * 8,  4 * 8,  5 * 8,
                   6 * 8,  7 * 8,  8 * 8,
                   9 * 8,  10 * 8, 11 * 8,
                   12 * 8, 13 * 8, 14 * 8,
                   15 * 8, 16 * 8, 17 * 8,
                   18 * 8, 19 * 8, 20 * 8,
                   21 * 8, 22 * 8, 23 * 8,
                   24 * 8, 25 * 8, 26 * 8,
                   27 * 8, 28 * 8, 29 * 8,
                   30 * 8, 31 * 8, [32 ... ARCH_REGISTERS_MAX - 1] = ARCH_NOT_KEPT},
};

enum { REGISTERS = 176 + 8 }; // behind uc_flags, uc_link, uc_stack, uc_sigmask (1024 bits); fault_address

// Linux: struct sigcontext. x0 ... x30 sp pc pstate.
const struct arch_register_layout arch_aarch64_ucontext_registers = {
    .size_bytes = REGISTERS + 33 * 8,
    .word_bytes = 8,
    .pc_offset = REGISTERS + 32 * 8,
    .reg_offset = {REGISTERS + 0 * 8,  REGISTERS + 1 * 8,  REGISTERS + 2 * 8,
                   REGISTERS + 3 * 8,  REGISTERS + 4 * 8,  REGISTERS + 5 * 8,
                   REGISTERS + 6 * 8,  REGISTERS + 7 * 8,  REGISTERS + 8 * 8,
                   REGISTERS + 9 * 8,  REGISTERS + 10 * 8, REGISTERS + 11 * 8,
                   REGISTERS + 12 * 8, REGISTERS + 13 * 8, REGISTERS + 14 * 8,
                   REGISTERS + 15 * 8, REGISTERS + 16 * 8, REGISTERS + 17 * 8,
                   REGISTERS + 18 * 8, REGISTERS + 19 * 8, REGISTERS + 20 * 8,
                   REGISTERS + 21 * 8, REGISTERS + 22 * 8, REGISTERS + 23 * 8,
                   REGISTERS + 24 * 8, REGISTERS + 25 * 8, REGISTERS + 26 * 8,
                   REGISTERS + 27 * 8, REGISTERS + 28 * 8, REGISTERS + 29 * 8,
                   REGISTERS + 30 * 8, REGISTERS + 31 * 8, [32 ... ARCH_REGISTERS_MAX - 1] = ARCH_NOT_KEPT},
};
