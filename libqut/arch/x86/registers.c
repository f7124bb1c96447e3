// SPDX-License-Identifier: Apache-2.0
#include <elf.h>

#include "libqut/arch/arch.h"

// DWARF numbering: System V i386 psABI. 8 is the return address (eip).
static const char *const names[] = {"eax", "ecx", "edx", "ebx", "esp", "ebp", "esi", "edi", "eip"};

const struct qut_arch qut_arch_x86 = {
    .id = QUT_ARCH_X86,
    .name = "x86",
    .elf_machine = EM_386,
    .word_bytes = 4,
    .pc_shift = 0,
    .register_count = 9,
    .sp_reg = 4,
    .ra_reg = 8,
    .ra_in_register = false,
    .tracked_count = 4,
    .tracked = {5, 3, 6, 7},
    .register_names = names,
};
