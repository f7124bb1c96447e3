// SPDX-License-Identifier: Apache-2.0
#include "qutc/cfi/oat_code.h"

static void read_x86(struct base_bytes code, struct art_instruction *instruction)
{
    art_read_x86(code.data, code.size, false, instruction);
}

static void read_x86_64(struct base_bytes code, struct art_instruction *instruction)
{
    art_read_x86(code.data, code.size, true, instruction);
}

// Callee-saved are not those that ART has uses of its own for: the thread, the state of the collector. The register of
// the dex pc is the same in all versions that have this interpreter.
static const uint8_t low_of_x86_64[8] = {0, 2, 1, 3, 7, 6, 4, 5};

static const struct cfi_oat_arch archs[QUT_ARCH_END] = {
    [QUT_ARCH_X86_64] = {.read = read_x86_64,
                         .may_save_core = 0x1f028, // rbx rbp r12-r15
                         .may_save_fp = 0xf000,    // xmm12-15
                         .callee_saves = 0xf028,
                         .fp_bytes = 8,
                         .ra_number = 16,
                         .method_alignment_bytes = 16,
                         .low_dwarf_numbers = low_of_x86_64,
                         .dex_pc_reg = 12}, // r12
    [QUT_ARCH_AARCH64] = {.read = cfi_oat_read_aarch64,
                          .may_save_core = 0x7ff80000, // x19-x30
                          .may_save_fp = 0xff00,       // d8-d15
                          .callee_saves = 0x3fe00000,
                          .fp_bytes = 8,
                          .ra_number = 30,
                          .method_alignment_bytes = 16,
                          .dex_pc_reg = 20},
    [QUT_ARCH_ARM] = {.read = cfi_oat_read_thumb,
                      .may_save_core = 0x4ff0,   // r4-r11 lr
                      .may_save_fp = 0xffff0000, // s16-s31
                      .callee_saves = 0x0de0,
                      .fp_bytes = 4,
                      .ra_number = 14,
                      .method_alignment_bytes = 8,
                      .dex_pc_reg = 4},
    [QUT_ARCH_X86] = {.read = read_x86,
                      .may_save_core = 0x1e0, // ebp esi edi
                      .callee_saves = 0xe0,
                      .fp_bytes = 8,
                      .ra_number = 8,
                      .method_alignment_bytes = 16,
                      .lost_reg = 3,    // ebx; ART's own frame programs say so too
                      .dex_pc_reg = 6}, // esi
    [QUT_ARCH_RISCV64] = {.read = cfi_oat_read_riscv64,
                          .may_save_core = 0x0ffc0302, // ra s0-s11
                          .may_save_fp = 0xffc0300,    // fs0-fs11
                          .callee_saves = 0x0ffc0100,
                          .fp_bytes = 8,
                          .ra_number = 1,
                          .method_alignment_bytes = 16,
                          .dex_pc_reg = QUT_NO_REGISTER},
};

const struct cfi_oat_arch *cfi_oat_arch(const struct arch *arch)
{
    static const struct cfi_oat_arch none = {.dex_pc_reg = QUT_NO_REGISTER};
    return archs[arch->id].read ? &archs[arch->id] : &none;
}
