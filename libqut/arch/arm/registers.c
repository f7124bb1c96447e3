// SPDX-License-Identifier: Apache-2.0
#include <elf.h>

#include "libqut/arch/arch.h"

// DWARF numbering: DWARF for the Arm Architecture.
static const char *const names[] = {"r0", "r1", "r2",  "r3",  "r4",  "r5", "r6", "r7",
                                    "r8", "r9", "r10", "r11", "r12", "sp", "lr", "pc"};

const struct qut_arch qut_arch_arm = {
    .id = QUT_ARCH_ARM,
    .name = "arm",
    .elf_machine = EM_ARM,
    .word_bytes = 4,
    .pc_shift = 1, // Thumb
    .register_count = 16,
    .sp_reg = 13,
    .ra_reg = 14,
    .ra_in_register = true,
    // r11 and r7 frame pointers (Arm, Thumb); r10 generic JNI frame; r4, r11 dex pc; r6 nterp's references.
    .tracked_count = 7,
    .tracked = {11, 7, 4, 6, 10, 5, 8},
    .register_names = names,
};
