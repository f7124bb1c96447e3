// SPDX-License-Identifier: Apache-2.0
#include <elf.h>

#include "libqut/arch/arch.h"

// DWARF numbering: DWARF for the Arm 64-bit Architecture. 31 is sp.
static const char *const names[] = {"x0",  "x1",  "x2",  "x3",  "x4",  "x5",  "x6",  "x7",  "x8",  "x9",  "x10",
                                    "x11", "x12", "x13", "x14", "x15", "x16", "x17", "x18", "x19", "x20", "x21",
                                    "x22", "x23", "x24", "x25", "x26", "x27", "x28", "x29", "x30", "sp"};

const struct qut_arch qut_arch_aarch64 = {
    .id = QUT_ARCH_AARCH64,
    .name = "aarch64",
    .elf_machine = EM_AARCH64,
    .word_bytes = 8,
    .pc_shift = 2,
    .register_count = 32,
    .sp_reg = 31,
    .ra_reg = 30,
    .ra_in_register = true,
    // x29 frame pointer; x28 generic JNI frame; x19, x20, x22 dex pc; x25, x27 nterp's register arrays.
    .tracked_count = 7,
    .tracked = {29, 19, 20, 22, 25, 27, 28},
    .register_names = names,
};
