// SPDX-License-Identifier: Apache-2.0
// RV64 (The RISC-V Instruction Set Manual, volume I): what is written once for instructions of four bytes and of two.
// Register 0 is zero, and keeps nothing.
#ifndef QUTC_CODE_RISCV64_INSIDE_H
#define QUTC_CODE_RISCV64_INSIDE_H

#include "qutc/code/op.h"

enum { CODE_RV_ZERO = 0, CODE_RV_RA = 1, CODE_RV_SP = 2, CODE_RV_A0 = 10 };

void code_rv_compressed(struct code_instruction *in, uint32_t half, uint64_t vaddr);

static inline uint32_t code_rv_field(uint32_t word, unsigned from_bit, unsigned bits)
{
    return word >> from_bit & ((1u << bits) - 1);
}

// `count` bits of the word from from_bit on, put where they stand in a number.
static inline uint32_t code_rv_bits(uint32_t word, unsigned from_bit, unsigned count, unsigned to_bit)
{
    return code_rv_field(word, from_bit, count) << to_bit;
}

static inline int64_t code_rv_signed(uint32_t value, unsigned bits)
{
    return (int64_t)((uint64_t)value << (64 - bits)) >> (64 - bits);
}

static inline unsigned code_rv_or_none(unsigned reg)
{
    return reg == CODE_RV_ZERO ? CODE_REG_NONE : reg;
}

static inline void code_rv_lose(struct code_instruction *in, unsigned reg)
{
    if (reg != CODE_RV_ZERO)
        code_lose(in, reg);
}

static inline void code_rv_set(struct code_instruction *in, unsigned to, unsigned from, int64_t number)
{
    if (to != CODE_RV_ZERO)
        code_set(in, to, code_rv_or_none(from), number);
}

static inline void code_rv_extend(struct code_instruction *in, unsigned to, unsigned from, unsigned bytes,
                                  bool is_signed)
{
    struct code_op *op = code_add(in, CODE_OP_EXTEND, to, from);
    op->size_bytes = (uint8_t)bytes;
    op->negative = is_signed;
}

// addiw, sext.w
static inline void code_rv_set_word(struct code_instruction *in, unsigned to, unsigned from, int64_t number)
{
    code_rv_set(in, to, from, number);
    if (to != CODE_RV_ZERO && from != CODE_RV_ZERO)
        code_rv_extend(in, to, to, 4, true);
}

// to = from + (other << shift), or minus it.
static inline void code_rv_sum(struct code_instruction *in, unsigned to, unsigned from, unsigned other, unsigned shift,
                               bool subtracts)
{
    if (to == CODE_RV_ZERO)
        return;
    if (other == CODE_RV_ZERO) {
        code_rv_set(in, to, from, 0);
    } else if (from == CODE_RV_ZERO && shift == 0 && !subtracts) {
        code_rv_set(in, to, other, 0);
    } else if (from == CODE_RV_ZERO) {
        code_lose(in, to);
    } else {
        struct code_op *op = code_add(in, CODE_OP_ADD, to, from);
        op->other = (uint8_t)other;
        op->shift = (uint8_t)shift;
        op->negative = subtracts;
    }
}

static inline void code_rv_load(struct code_instruction *in, unsigned to, unsigned base, int64_t number, unsigned bytes,
                                bool is_signed)
{
    if (to == CODE_RV_ZERO)
        return;
    if (base == CODE_RV_ZERO) {
        code_lose(in, to);
        return;
    }
    code_load(in, to, base, number, bytes);
    in->ops[in->op_count - 1].negative = is_signed;
}

static inline void code_rv_store(struct code_instruction *in, unsigned base, int64_t number, unsigned from,
                                 unsigned bytes)
{
    if (base != CODE_RV_ZERO)
        code_store(in, base, number, code_rv_or_none(from), bytes);
}

// jalr: with its link register.
static inline void code_rv_jump_register(struct code_instruction *in, unsigned link, unsigned base, int64_t number)
{
    in->flow = link != CODE_RV_ZERO ? CODE_CALL : base == CODE_RV_RA && number == 0 ? CODE_RETURN : CODE_JUMP;
    in->through = (uint8_t)base;
    if (number != 0 || base == CODE_RV_ZERO) {
        code_set(in, CODE_REG_SCRATCH, code_rv_or_none(base), number);
        in->through = CODE_REG_SCRATCH;
    }
    // Calls that do not link by ra are of what saves registers for its caller (-msave-restore): sp comes back lower.
    if (link != CODE_RV_ZERO && link != CODE_RV_RA)
        code_lose(in, CODE_RV_SP);
}

static inline void code_rv_compare(struct code_instruction *in, unsigned from, unsigned other)
{
    struct code_op *op = code_add(in, CODE_OP_COMPARE, CODE_REG_NONE, code_rv_or_none(from));
    op->other = (uint8_t)code_rv_or_none(other);
    op->size_bytes = 8;
}

#endif
