// SPDX-License-Identifier: Apache-2.0
// A64 (Arm ARM, DDI 0487, chapter C4.1), by groups. Number 31 is sp as the base of loads and stores and as an operand
// of add, sub, and the logical immediates that set no flags. Elsewhere it is the zero register, which keeps nothing.
#ifndef QUTC_CODE_AARCH64_INSIDE_H
#define QUTC_CODE_AARCH64_INSIDE_H

#include "qutc/code/op.h"

enum { CODE_A64_LR = 30, CODE_A64_SP = 31, CODE_A64_ZR = 31 };

void code_a64_memory(struct code_instruction *in, uint32_t word, uint64_t vaddr); // loads and stores
void code_a64_immediate(struct code_instruction *in, uint32_t word, uint64_t vaddr);
void code_a64_registers(struct code_instruction *in, uint32_t word);
void code_a64_vectors(struct code_instruction *in, uint32_t word);
void code_a64_scalable(struct code_instruction *in, uint32_t word);

static inline unsigned code_a64_field(uint32_t word, unsigned from_bit, unsigned bits)
{
    return word >> from_bit & ((1u << bits) - 1);
}

static inline int64_t code_a64_signed(uint32_t word, unsigned from_bit, unsigned bits)
{
    return (int64_t)((uint64_t)(word >> from_bit) << (64 - bits)) >> (64 - bits);
}

// Of a register that is zr by number 31.
static inline void code_a64_lose(struct code_instruction *in, unsigned reg)
{
    if (reg != CODE_A64_ZR)
        code_lose(in, reg);
}

static inline unsigned code_a64_or_none(unsigned reg)
{
    return reg == CODE_A64_ZR ? CODE_REG_NONE : reg;
}

static inline void code_a64_extend(struct code_instruction *in, unsigned to, unsigned from, unsigned bytes,
                                   bool is_signed)
{
    struct code_op *op = code_add(in, CODE_OP_EXTEND, to, from);
    op->size_bytes = (uint8_t)bytes;
    op->negative = is_signed;
}

// A w register was computed as an x register: its upper half is zero.
static inline void code_a64_narrow(struct code_instruction *in, unsigned reg, bool is_wide)
{
    if (!is_wide)
        code_a64_extend(in, reg, reg, 4, false);
}

// An index: extended by one of eight options, of which 3 and 7 are whole registers. Returns the register that has it;
// NONE: it is zr.
static inline unsigned code_a64_index(struct code_instruction *in, unsigned reg, unsigned option)
{
    if (reg == CODE_A64_ZR || (option & 3) == 3)
        return code_a64_or_none(reg);
    code_a64_extend(in, CODE_REG_SCRATCH, reg, 1u << (option & 3), option >> 2);
    return CODE_REG_SCRATCH;
}

// The flags are of something that no branch is followed by.
static inline void code_a64_lose_flags(struct code_instruction *in)
{
    code_add(in, CODE_OP_COMPARE, CODE_REG_NONE, CODE_REG_NONE);
}

#endif
