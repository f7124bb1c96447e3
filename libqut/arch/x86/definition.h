// SPDX-License-Identifier: Apache-2.0
// 32-bit x86 as data. DWARF numbering: System V i386 psABI, table 2.14. 8 is the return address (eip).
#ifndef QUT_ARCH_X86_DEFINITION_H
#define QUT_ARCH_X86_DEFINITION_H

#include <elf.h>

#include "libqut/arch/arch.h"

extern const char *const arch_x86_register_names[];
extern const struct arch_register_layout arch_x86_core_registers, arch_x86_ucontext_registers;
extern const struct arch_trampoline arch_x86_trampolines[2];
enum { ARCH_X86_CALL_SITES = 10, ARCH_X86_FRAME_EDGES = 7 };
extern const struct arch_call_site arch_x86_call_sites[ARCH_X86_CALL_SITES];
extern const struct arch_frame_edge arch_x86_frame_edges[ARCH_X86_FRAME_EDGES];

// Tracked is every callee-saved register.
#define ARCH_X86_DEFINITION                                                                                            \
    {                                                                                                                  \
        .id = QUT_ARCH_X86, .name = "x86", .elf_machine = EM_386, .word_bytes = 4, .pc_shift = 0, .register_count = 9, \
        .sp_reg = 4, .ra_reg = 8, .ra_in_register = false, .tracked_count = 4, .tracked = {5, 3, 6, 7},                \
        .guess = ARCH_GUESS_STACK_TOP, .register_names = arch_x86_register_names,                                      \
        .core_registers = &arch_x86_core_registers, .ucontext_registers = &arch_x86_ucontext_registers,                \
        .trampolines = arch_x86_trampolines, .trampoline_count = 2, .cpu_timers_wait_from = {5, 9}, .pc_reg = 8,       \
        .int64_alignment_bytes = 4, .jump_slot_relocation = R_386_JMP_SLOT, .glob_dat_relocation = R_386_GLOB_DAT,     \
        .counts_from_got_plt = true,                                                                                   \
        .system_calls = {{2, {0xcd, 0x80}}} /* int $0x80; sysenter returns behind one, too */,                         \
        .result_reg = 0 /* eax */, .call_argument_regs = {3, 1, 2, 6} /* ebx, ecx, edx, esi */,                        \
        .call_number_offset = 44 /* orig_eax */, .clone_number = 120, .telling_register = "eip",                       \
        .frame_record = {true, true, 1, 0, 2}, .call_sites = arch_x86_call_sites,                                      \
        .call_site_count = ARCH_X86_CALL_SITES, .frame_edges = arch_x86_frame_edges,                                   \
        .frame_edge_count = ARCH_X86_FRAME_EDGES,                                                                      \
    }

#endif
