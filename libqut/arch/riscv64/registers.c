// SPDX-License-Identifier: Apache-2.0
#include "libqut/arch/riscv64/definition.h"

const char *const arch_riscv64_register_names[] = {"zero", "ra", "sp", "gp", "tp",  "t0",  "t1", "t2", "s0", "s1", "a0",
                                                   "a1",   "a2", "a3", "a4", "a5",  "a6",  "a7", "s2", "s3", "s4", "s5",
                                                   "s6",   "s7", "s8", "s9", "s10", "s11", "t3", "t4", "t5", "t6"};

const struct arch arch_riscv64 = ARCH_RISCV64_DEFINITION;

// Linux: struct user_regs_struct. pc, then x1 ... x31.
const struct arch_register_layout arch_riscv64_core_registers = {
    .size_bytes = 32 * 8,
    .word_bytes = 8,
    .pc_offset = 0 * 8,
    .reg_offset = {ARCH_NOT_KEPT, 1 * 8,  2 * 8,
                   3 * 8,         4 * 8,  5 * 8,
                   6 * 8,         7 * 8,  8 * 8,
                   9 * 8,         10 * 8, 11 * 8,
                   12 * 8,        13 * 8, 14 * 8,
                   15 * 8,        16 * 8, 17 * 8,
                   18 * 8,        19 * 8, 20 * 8,
                   21 * 8,        22 * 8, 23 * 8,
                   24 * 8,        25 * 8, 26 * 8,
                   27 * 8,        28 * 8, 29 * 8,
                   30 * 8,        31 * 8, [32 ... ARCH_REGISTERS_MAX - 1] = ARCH_NOT_KEPT},
};

enum { REGISTERS = 176 }; // behind uc_flags, uc_link, uc_stack, uc_sigmask (1024 bits)

// Linux: struct sigcontext begins with struct user_regs_struct.
const struct arch_register_layout arch_riscv64_ucontext_registers = {
    .size_bytes = REGISTERS + 32 * 8,
    .word_bytes = 8,
    .pc_offset = REGISTERS + 0 * 8,
    .reg_offset = {ARCH_NOT_KEPT,      REGISTERS + 1 * 8,  REGISTERS + 2 * 8,
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
