// SPDX-License-Identifier: Apache-2.0
// aarch64 as data. DWARF numbering: DWARF for the Arm 64-bit Architecture, section 4.1. 31 is sp.
#ifndef QUT_ARCH_AARCH64_DEFINITION_H
#define QUT_ARCH_AARCH64_DEFINITION_H

#include <elf.h>

#include "libqut/arch/arch.h"

extern const char *const qut_aarch64_register_names[];
extern const struct qut_register_layout qut_aarch64_core_registers, qut_aarch64_ucontext_registers;
extern const struct qut_trampoline qut_aarch64_trampolines[1];

// Tracked: x29 is the frame pointer; x28 generic JNI frame; x19, x20, x22 dex pc; x25, x27 nterp's register arrays.
#define QUT_ARCH_AARCH64_DEFINITION                                                                                    \
    {                                                                                                                  \
        .id = QUT_ARCH_AARCH64, .name = "aarch64", .elf_machine = EM_AARCH64, .word_bytes = 8, .pc_shift = 2,          \
        .register_count = 32, .sp_reg = 31, .ra_reg = 30, .ra_in_register = true, .tracked_count = 7,                  \
        .tracked = {29, 19, 20, 22, 25, 27, 28}, .guess = QUT_GUESS_LINK_REGISTER, .has_signed_ra = true,              \
        .register_names = qut_aarch64_register_names, .core_registers = &qut_aarch64_core_registers,                   \
        .ucontext_registers = &qut_aarch64_ucontext_registers, .trampolines = qut_aarch64_trampolines,                 \
        .trampoline_count = 1,                                                                                         \
    }

#endif
