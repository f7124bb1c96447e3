// SPDX-License-Identifier: Apache-2.0
#include <elf.h>

#include "libqut/arch/arch.h"

// DWARF numbering: System V AMD64 psABI, figure 3.36. 16 is the return address (rip).
static const char *const names[] = {"rax", "rdx", "rcx", "rbx", "rsi", "rdi", "rbp", "rsp", "r8",
                                    "r9",  "r10", "r11", "r12", "r13", "r14", "r15", "rip"};

const struct qut_arch qut_arch_x86_64 = {
    .id = QUT_ARCH_X86_64,
    .name = "x86_64",
    .elf_machine = EM_X86_64,
    .word_bytes = 8,
    .pc_shift = 0,
    .register_count = 17,
    .sp_reg = 7,
    .ra_reg = 16,
    .ra_in_register = false,
    // Every callee-saved register: rbp and rbx, r12..r15 all occur as CFA base in Debian's libraries, and ART's
    // interpreters keep their frame in r12 and r15.
    .tracked_count = 6,
    .tracked = {6, 3, 12, 13, 14, 15},
    .register_names = names,
};
