// SPDX-License-Identifier: Apache-2.0
// Machine code of OAT methods, read one instruction at a time: only what it does to the stack pointer, to the return
// address, which words it moves between registers and the stack, and where it branches to. What an instruction computes
// does not matter here.
#ifndef QUTC_CFI_OAT_CODE_H
#define QUTC_CFI_OAT_CODE_H

#include "base/cursor_inline.h"
#include "libqut/arch/arch.h"

enum { CFI_OAT_ACCESSES_MAX = 16 };

enum cfi_oat_effect {
    CFI_OAT_PLAIN,
    CFI_OAT_CALL,
    CFI_OAT_RETURN,
    CFI_OAT_LEAVES,  // goes on elsewhere, unconditionally
    CFI_OAT_RA_LOST, // the return-address register is overwritten
    CFI_OAT_SP_LOST, // the stack pointer becomes something that is not known, or the instruction is not known
};

// Whole words at sp + offset_bytes, sp being that before the instruction.
struct cfi_oat_access {
    uint8_t reg; // number of the instruction set
    int32_t offset_bytes;
};

struct cfi_oat_instruction {
    uint8_t size_bytes; // 0: cut off, or not known
    uint8_t effect;     // enum cfi_oat_effect
    uint8_t access_count;
    bool loads;    // else the accesses are stores
    bool branches; // to a place in the code: branch_bytes from the instruction's start
    int32_t branch_bytes;
    int32_t sp_change_bytes;
    struct cfi_oat_access access[CFI_OAT_ACCESSES_MAX];
};

typedef void (*cfi_oat_read_fn)(struct base_bytes code, struct cfi_oat_instruction *instruction);

// Read the instruction at the code's start. Call them by cfi_oat_read.
void cfi_oat_read_aarch64(struct base_bytes code, struct cfi_oat_instruction *instruction);
void cfi_oat_read_thumb(struct base_bytes code, struct cfi_oat_instruction *instruction);
void cfi_oat_read_x86(struct base_bytes code, struct cfi_oat_instruction *instruction);
void cfi_oat_read_x86_64(struct base_bytes code, struct cfi_oat_instruction *instruction);
void cfi_oat_read_riscv64(struct base_bytes code, struct cfi_oat_instruction *instruction);

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

static inline void cfi_oat_read(cfi_oat_read_fn read, struct base_bytes code, struct cfi_oat_instruction *instruction)
{
    memset(instruction, 0, offsetof(struct cfi_oat_instruction, access)); // of these, access_count are filled
    read(code, instruction);
}

static inline void cfi_oat_add_access(struct cfi_oat_instruction *instruction, unsigned reg, int32_t offset_bytes)
{
    if (instruction->access_count < CFI_OAT_ACCESSES_MAX)
        instruction->access[instruction->access_count++] = (struct cfi_oat_access){(uint8_t)reg, offset_bytes};
}

static inline void cfi_oat_branch(struct cfi_oat_instruction *instruction, int32_t bytes)
{
    instruction->branches = true;
    instruction->branch_bytes = bytes;
}

// The low `bits` bits as a signed number.
static inline int32_t cfi_oat_signed(uint32_t value, unsigned bits)
{
    return (int32_t)(value << (32 - bits)) >> (32 - bits);
}

#endif
