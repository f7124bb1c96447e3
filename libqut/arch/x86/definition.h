// SPDX-License-Identifier: Apache-2.0
// 32-bit x86 as data. DWARF numbering: System V i386 psABI, table 2.14. 8 is the return address (eip).
#ifndef QUT_ARCH_X86_DEFINITION_H
#define QUT_ARCH_X86_DEFINITION_H

#include <elf.h>

#include "libqut/arch/arch.h"

extern const char *const qut_x86_register_names[];
extern const struct qut_register_layout qut_x86_core_registers, qut_x86_ucontext_registers;
extern const struct qut_trampoline qut_x86_trampolines[2];

// Tracked is every callee-saved register.
#define QUT_ARCH_X86_DEFINITION                                                                                        \
    {                                                                                                                  \
        .id = QUT_ARCH_X86, .name = "x86", .elf_machine = EM_386, .word_bytes = 4, .pc_shift = 0, .register_count = 9, \
        .sp_reg = 4, .ra_reg = 8, .ra_in_register = false, .tracked_count = 4, .tracked = {5, 3, 6, 7},                \
        .guess = QUT_GUESS_STACK_TOP, .register_names = qut_x86_register_names,                                        \
        .core_registers = &qut_x86_core_registers, .ucontext_registers = &qut_x86_ucontext_registers,                  \
        .trampolines = qut_x86_trampolines, .trampoline_count = 2, .cpu_timers_wait_from = {5, 9},                     \
    }

#endif
