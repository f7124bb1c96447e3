// SPDX-License-Identifier: Apache-2.0
// aarch64 as data. DWARF numbering: DWARF for the Arm 64-bit Architecture, section 4.1. 31 is sp.
#ifndef QUT_ARCH_AARCH64_DEFINITION_H
#define QUT_ARCH_AARCH64_DEFINITION_H

#include <elf.h>

#include "libqut/arch/arch.h"

extern const char *const arch_aarch64_register_names[];
extern const struct arch_register_layout arch_aarch64_core_registers, arch_aarch64_ucontext_registers;
extern const struct arch_trampoline arch_aarch64_trampolines[1];
enum { ARCH_AARCH64_CALL_SITES = 2 };
extern const struct arch_call_site arch_aarch64_call_sites[ARCH_AARCH64_CALL_SITES];

// Tracked: x29 is the frame pointer; x28 generic JNI frame; x19, x20, x22 dex pc; x25, x27 nterp's register arrays.
#define ARCH_AARCH64_DEFINITION                                                                                        \
    {                                                                                                                  \
        .id = QUT_ARCH_AARCH64, .name = "aarch64", .elf_machine = EM_AARCH64, .word_bytes = 8, .pc_shift = 2,          \
        .register_count = 32, .sp_reg = 31, .ra_reg = 30, .ra_in_register = true, .tracked_count = 7,                  \
        .tracked = {29, 19, 20, 22, 25, 27, 28}, .guess = ARCH_GUESS_LINK_REGISTER, .has_signed_ra = true,             \
        .register_names = arch_aarch64_register_names, .core_registers = &arch_aarch64_core_registers,                 \
        .ucontext_registers = &arch_aarch64_ucontext_registers, .trampolines = arch_aarch64_trampolines,               \
        .trampoline_count = 1, .pc_reg = 32, .int64_alignment_bytes = 8, .jump_slot_relocation = R_AARCH64_JUMP_SLOT,  \
        .glob_dat_relocation = R_AARCH64_GLOB_DAT, .has_tagged_pointers = true,                                        \
        .plt_header = {32, 16, -8, 0xa9bf7bf0} /* stp x16, x30, [sp, #-16]! */,                                        \
        .system_calls = {{4, {0x01, 0x00, 0x00, 0xd4}}} /* svc #0 */, .result_reg = 0 /* x0 */,                        \
        .call_number_reg = 8 /* x8 */, .clone_number = 220, .telling_register = "x0",                                  \
        .frame_record = {true, false, 1, 0, 2}, .call_sites = arch_aarch64_call_sites,                                 \
        .call_site_count = ARCH_AARCH64_CALL_SITES, .has_call_thunks = true,                                           \
    }

#endif
