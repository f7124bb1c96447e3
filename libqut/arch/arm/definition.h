// SPDX-License-Identifier: Apache-2.0
// 32-bit Arm as data. DWARF numbering: DWARF for the Arm Architecture, section 4.1.
#ifndef QUT_ARCH_ARM_DEFINITION_H
#define QUT_ARCH_ARM_DEFINITION_H

#include <elf.h>

#include "libqut/arch/arch.h"

extern const char *const qut_arm_register_names[];
extern const struct qut_register_layout qut_arm_core_registers, qut_arm_ucontext_registers;
extern const struct qut_trampoline qut_arm_trampolines[14];

// Tracked: r11 and r7 are frame pointers (Arm, Thumb); r10 generic JNI frame; r4, r11 dex pc; r6 nterp's references.
// pc_shift is that of Thumb.
#define QUT_ARCH_ARM_DEFINITION                                                                                        \
    {                                                                                                                  \
        .id = QUT_ARCH_ARM, .name = "arm", .elf_machine = EM_ARM, .word_bytes = 4, .pc_shift = 1,                      \
        .register_count = 16, .sp_reg = 13, .ra_reg = 14, .ra_in_register = true, .tracked_count = 7,                  \
        .tracked = {11, 7, 4, 6, 10, 5, 8}, .guess = QUT_GUESS_LINK_REGISTER, .has_thumb = true,                       \
        .register_names = qut_arm_register_names, .core_registers = &qut_arm_core_registers,                           \
        .ucontext_registers = &qut_arm_ucontext_registers, .trampolines = qut_arm_trampolines, .trampoline_count = 14, \
    }

#endif
