// SPDX-License-Identifier: Apache-2.0
// Machine code of OAT methods, read one instruction at a time.
#ifndef QUTC_CFI_OAT_CODE_H
#define QUTC_CFI_OAT_CODE_H

#include "base/cursor_inline.h"
#include "libqut/arch/arch.h"
#include "libqut/art/instruction.h"

typedef void (*cfi_oat_read_fn)(struct base_bytes code, struct art_instruction *instruction);

// Read the instruction at the code's start. Call them by cfi_oat_read.
void cfi_oat_read_aarch64(struct base_bytes code, struct art_instruction *instruction);
void cfi_oat_read_thumb(struct base_bytes code, struct art_instruction *instruction);
void cfi_oat_read_riscv64(struct base_bytes code, struct art_instruction *instruction);

// What ART makes of an architecture. Masks are by the numbers of the instruction set; on x86 with a bit of the return
// address.
struct cfi_oat_arch {
    cfi_oat_read_fn read;                // NULL: there are no OAT files for it
    uint32_t may_save_core, may_save_fp; // registers that compiled code saves
    uint32_t callee_saves;               // of them, those that it saves before it uses them for anything
    uint8_t fp_bytes;                    // of one floating-point register in the frame
    uint8_t ra_number;                   // of the return address in masks
    uint8_t method_alignment_bytes;
    uint8_t lost_reg;                 // a tracked one that compiled code overwrites and saves nowhere; 0: none
    const uint8_t *low_dwarf_numbers; // of the first eight registers; NULL: DWARF's are the instruction set's
    uint8_t dex_pc_reg;               // of the interpreter, by DWARF number; QUT_NO_REGISTER: not known
};
const struct cfi_oat_arch *cfi_oat_arch(const struct arch *arch);

static inline void cfi_oat_read(cfi_oat_read_fn read, struct base_bytes code, struct art_instruction *instruction)
{
    memset(instruction, 0, offsetof(struct art_instruction, access)); // of these, access_count are filled
    read(code, instruction);
}

// The low `bits` bits as a signed number.
static inline int32_t cfi_oat_signed(uint32_t value, unsigned bits)
{
    return (int32_t)(value << (32 - bits)) >> (32 - bits);
}

#endif
