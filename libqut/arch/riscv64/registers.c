// SPDX-License-Identifier: Apache-2.0
#include <elf.h>

#include "libqut/arch/arch.h"

// DWARF numbering: RISC-V ELF psABI.
static const char *const names[] = {"zero", "ra", "sp", "gp", "tp",  "t0",  "t1", "t2", "s0", "s1", "a0",
                                    "a1",   "a2", "a3", "a4", "a5",  "a6",  "a7", "s2", "s3", "s4", "s5",
                                    "s6",   "s7", "s8", "s9", "s10", "s11", "t3", "t4", "t5", "t6"};

const struct qut_arch qut_arch_riscv64 = {
    .id = QUT_ARCH_RISCV64,
    .name = "riscv64",
    .elf_machine = EM_RISCV,
    .word_bytes = 8,
    .pc_shift = 1, // compressed instructions
    .register_count = 32,
    .sp_reg = 2,
    .ra_reg = 1,
    .ra_in_register = true,
    // s0 frame pointer; s1 dex pc of the switch interpreter; the rest of the callee-saved registers that fit.
    .tracked_count = 7,
    .tracked = {8, 9, 18, 19, 20, 21, 22},
    .register_names = names,
};
