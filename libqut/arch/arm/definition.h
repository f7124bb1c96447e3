// SPDX-License-Identifier: Apache-2.0
// 32-bit Arm as data. DWARF numbering: DWARF for the Arm Architecture, section 4.1.
#ifndef QUT_ARCH_ARM_DEFINITION_H
#define QUT_ARCH_ARM_DEFINITION_H

#include <elf.h>

#include "libqut/arch/arch.h"

extern const char *const arch_arm_register_names[];
extern const struct arch_register_layout arch_arm_core_registers, arch_arm_ucontext_registers;
extern const struct arch_trampoline arch_arm_trampolines[14];

// Tracked: r11 and r7 are frame pointers (Arm, Thumb); r10 generic JNI frame; r4, r11 dex pc; r6 nterp's references.
// pc_shift is that of Thumb.
#define ARCH_ARM_DEFINITION                                                                                            \
    {                                                                                                                  \
        .id = QUT_ARCH_ARM, .name = "arm", .elf_machine = EM_ARM, .word_bytes = 4, .pc_shift = 1,                      \
        .register_count = 16, .sp_reg = 13, .ra_reg = 14, .ra_in_register = true, .tracked_count = 7,                  \
        .tracked = {11, 7, 4, 6, 10, 5, 8}, .guess = ARCH_GUESS_LINK_REGISTER, .has_thumb = true,                      \
        .register_names = arch_arm_register_names, .core_registers = &arch_arm_core_registers,                         \
        .ucontext_registers = &arch_arm_ucontext_registers, .trampolines = arch_arm_trampolines,                       \
        .trampoline_count = 14, .pc_reg = 15, .int64_alignment_bytes = 8, .jump_slot_relocation = R_ARM_JUMP_SLOT,     \
        .glob_dat_relocation = R_ARM_GLOB_DAT, .has_exidx = true,                                                      \
        .plt_header = {20, 4, -4, 0xe52de004} /* str lr, [sp, #-4]! */,                                                \
        .system_calls = {{4, {0x00, 0x00, 0x00, 0xef}}, {2, {0x00, 0xdf}}} /* svc #0 of Arm and Thumb */,              \
        .result_reg = 0 /* r0 */, .call_number_reg = 7 /* r7 */, .clone_number = 120, .telling_register = "r0",        \
    }

#endif
