// SPDX-License-Identifier: Apache-2.0
// riscv64 as data. DWARF numbering: RISC-V ELF psABI, "DWARF register numbers".
#ifndef QUT_ARCH_RISCV64_DEFINITION_H
#define QUT_ARCH_RISCV64_DEFINITION_H

#include <elf.h>

#include "libqut/arch/arch.h"

extern const char *const arch_riscv64_register_names[];
extern const struct arch_register_layout arch_riscv64_core_registers, arch_riscv64_ucontext_registers;
extern const struct arch_trampoline arch_riscv64_trampolines[1];
enum { ARCH_RISCV64_CALL_SITES = 3 };
extern const struct arch_call_site arch_riscv64_call_sites[ARCH_RISCV64_CALL_SITES];

// Tracked: s0 is the frame pointer; s1 dex pc of the switch interpreter; the rest of the callee-saved registers that
// fit. pc_shift is that of compressed instructions.
#define ARCH_RISCV64_DEFINITION                                                                                        \
    {                                                                                                                  \
        .id = QUT_ARCH_RISCV64, .name = "riscv64", .elf_machine = EM_RISCV, .word_bytes = 8, .pc_shift = 1,            \
        .register_count = 32, .sp_reg = 2, .ra_reg = 1, .ra_in_register = true, .tracked_count = 7,                    \
        .tracked = {8, 9, 18, 19, 20, 21, 22}, .guess = ARCH_GUESS_LINK_REGISTER,                                      \
        .register_names = arch_riscv64_register_names, .core_registers = &arch_riscv64_core_registers,                 \
        .ucontext_registers = &arch_riscv64_ucontext_registers, .trampolines = arch_riscv64_trampolines,               \
        .trampoline_count = 1, .vector_bytes_reg = 4096 + 0xc22 /* csr vlenb */, .vector_bytes_name = "vlenb",         \
        .pc_reg = QUT_NO_REGISTER, .int64_alignment_bytes = 8, .jump_slot_relocation = R_RISCV_JUMP_SLOT,              \
        .glob_dat_relocation = R_RISCV_64, .plt_header = {32, 0, 0, 0},                                                \
        .system_calls = {{4, {0x73, 0x00, 0x00, 0x00}}} /* ecall */, .result_reg = 10 /* a0 */,                        \
        .call_number_reg = 17 /* a7 */, .clone_number = 220, .telling_register = "ra",                                 \
        .frame_record = {true, true, -1, -2, 0}, .call_sites = arch_riscv64_call_sites,                                \
        .call_site_count = ARCH_RISCV64_CALL_SITES,                                                                    \
    }

#endif
