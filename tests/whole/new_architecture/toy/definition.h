// SPDX-License-Identifier: Apache-2.0
// An architecture that no machine has. 13 is the frame pointer, 14 sp, 15 the link register.
#ifndef QUT_ARCH_TOY_DEFINITION_H
#define QUT_ARCH_TOY_DEFINITION_H

#include "libqut/arch/arch.h"

extern const char *const arch_toy_register_names[];
extern const struct arch_register_layout arch_toy_core_registers, arch_toy_ucontext_registers;
extern const struct arch_trampoline arch_toy_trampolines[1];

// Tracked is every callee-saved register.
#define QUT_ARCH_TOY_DEFINITION                                                                                        \
    {                                                                                                                  \
        .id = QUT_ARCH_TOY, .name = "toy", .elf_machine = 0x5154, .word_bytes = 8, .pc_shift = 2,                      \
        .register_count = 16, .sp_reg = 14, .ra_reg = 15, .pc_reg = QUT_NO_REGISTER, .ra_in_register = true,           \
        .tracked_count = 3, .tracked = {13, 11, 12}, .guess = ARCH_GUESS_LINK_REGISTER,                                \
        .register_names = arch_toy_register_names, .core_registers = &arch_toy_core_registers,                         \
        .ucontext_registers = &arch_toy_ucontext_registers, .trampolines = arch_toy_trampolines,                       \
        .trampoline_count = 1, .int64_alignment_bytes = 8, .jump_slot_relocation = 5, .glob_dat_relocation = 2,        \
        .system_calls = {{4, {0x0f, 0x00, 0x00, 0x70}}}, .result_reg = 0, .telling_register = "g0",                    \
    }

#endif
