// SPDX-License-Identifier: Apache-2.0
// x86_64 as data. DWARF numbering: System V AMD64 psABI, figure 3.36. 16 is the return address (rip).
#ifndef QUT_ARCH_X86_64_DEFINITION_H
#define QUT_ARCH_X86_64_DEFINITION_H

#include <elf.h>

#include "libqut/arch/arch.h"

extern const char *const arch_x86_64_register_names[];
extern const struct arch_register_layout arch_x86_64_core_registers, arch_x86_64_ucontext_registers;
extern const struct arch_trampoline arch_x86_64_trampolines[2];
enum { ARCH_X86_64_CALL_SITES = 10, ARCH_X86_64_FRAME_EDGES = 7 };
extern const struct arch_call_site arch_x86_64_call_sites[ARCH_X86_64_CALL_SITES];
extern const struct arch_frame_edge arch_x86_64_frame_edges[ARCH_X86_64_FRAME_EDGES];

// Tracked is every callee-saved register: rbp and rbx, r12..r15 all occur as CFA base in Debian's libraries, and ART's
// interpreters keep their frame in r12 and r15.
#define ARCH_X86_64_DEFINITION                                                                                         \
    {                                                                                                                  \
        .id = QUT_ARCH_X86_64, .name = "x86_64", .elf_machine = EM_X86_64, .word_bytes = 8, .pc_shift = 0,             \
        .register_count = 17, .sp_reg = 7, .ra_reg = 16, .ra_in_register = false, .tracked_count = 6,                  \
        .tracked = {6, 3, 12, 13, 14, 15}, .guess = ARCH_GUESS_STACK_TOP, .vsyscall = 0xffffffffff600000,              \
        .register_names = arch_x86_64_register_names, .core_registers = &arch_x86_64_core_registers,                   \
        .core_thread_pointer_offset = 21 * 8 /* fs_base */, .ucontext_registers = &arch_x86_64_ucontext_registers,     \
        .trampolines = arch_x86_64_trampolines, .trampoline_count = 2, .cpu_timers_wait_from = {5, 9}, .pc_reg = 16,   \
        .int64_alignment_bytes = 8, .jump_slot_relocation = R_X86_64_JUMP_SLOT,                                        \
        .glob_dat_relocation = R_X86_64_GLOB_DAT, .counts_from_got_plt = true,                                         \
        .system_calls = {{2, {0x0f, 0x05}}} /* syscall */, .result_reg = 0 /* rax */,                                  \
        .call_argument_regs = {5, 4, 1, 10} /* rdi, rsi, rdx, r10 */, .call_number_offset = 120 /* orig_rax */,        \
        .clone_number = 56, .tracee_id = QUT_ARCH_X86, .telling_register = "rip",                                      \
        .frame_record = {true, true, 1, 0, 2}, .call_sites = arch_x86_64_call_sites,                                   \
        .call_site_count = ARCH_X86_64_CALL_SITES, .frame_edges = arch_x86_64_frame_edges,                             \
        .frame_edge_count = ARCH_X86_64_FRAME_EDGES, .has_call_thunks = true,                                          \
    }

#endif
