// SPDX-License-Identifier: Apache-2.0
// 32-bit Arm (Arm ARM, DDI 0406 and DDI 0487, chapter F): A32 and T32 have the same instructions in other bits. What
// they do is said once, here and in transfer.c; register 15 is read as a constant, and written as a jump.
#ifndef QUTC_CODE_ARM_INSIDE_H
#define QUTC_CODE_ARM_INSIDE_H

#include "qutc/code/op.h"

enum { CODE_ARM_SP = 13, CODE_ARM_LR = 14, CODE_ARM_PC = 15 };

// One instruction while it is read.
struct code_arm {
    struct code_instruction *in;
    uint32_t word;    // T32: the first half above the second
    uint32_t pc;      // what register 15 is read as
    uint32_t literal; // ... as the base of literals
    unsigned mode;
};

// A load or a store of one register.
struct code_arm_transfer {
    unsigned reg, base;
    unsigned index, shift; // index NONE: `offset` says it
    bool is_odd;           // the index is shifted in a way that cannot be said
    int32_t offset;
    bool subtracts; // the index
    bool loads, is_signed;
    bool before, writes_back; // P and W: the offset is of the access; the base is changed
    unsigned bytes;
};

// ---- transfer.c
void code_arm_transfer(const struct code_arm *a, const struct code_arm_transfer *t);
void code_arm_transfer_two(const struct code_arm *a, const struct code_arm_transfer *t, unsigned second); // ldrd, strd
// ldm, stm, push, pop: of the lowest register first.
void code_arm_transfer_many(const struct code_arm *a, unsigned base, uint32_t list, bool loads, bool up, bool before,
                            bool writes_back);
void code_arm_jump(const struct code_arm *a, unsigned reg); // bx, mov pc

// ---- vectors.c: coprocessors and vectors have the same bits in both sets, but for the highest four.
void code_arm_coprocessor(const struct code_arm *a);
void code_arm_structures(const struct code_arm *a); // vld1 ... vst4

// ---- data.c
enum code_arm_operation { // as A32 numbers them
    CODE_ARM_AND,
    CODE_ARM_EOR,
    CODE_ARM_SUB,
    CODE_ARM_RSB,
    CODE_ARM_ADD,
    CODE_ARM_ADC,
    CODE_ARM_SBC,
    CODE_ARM_RSC,
    CODE_ARM_TST,
    CODE_ARM_TEQ,
    CODE_ARM_CMP,
    CODE_ARM_CMN,
    CODE_ARM_ORR,
    CODE_ARM_MOV,
    CODE_ARM_BIC,
    CODE_ARM_MVN,
    CODE_ARM_ELSE,
};
void code_arm_data_number(const struct code_arm *a, unsigned operation, bool sets_flags, unsigned to, unsigned from,
                          uint32_t number);
// `shift` to the left; is_odd: shifted otherwise.
void code_arm_data_register(const struct code_arm *a, unsigned operation, bool sets_flags, unsigned to, unsigned from,
                            unsigned other, unsigned shift, bool is_odd);

// ---- read.c
enum code_when code_arm_when(unsigned condition);

void code_arm_read_a32(struct code_arm *a);
void code_arm_read_half(struct code_arm *a); // T32, of two bytes
void code_arm_read_t32(struct code_arm *a);

static inline unsigned code_arm_field(uint32_t word, unsigned from_bit, unsigned bits)
{
    return word >> from_bit & ((1u << bits) - 1);
}

static inline int32_t code_arm_signed(uint32_t value, unsigned bits)
{
    return (int32_t)(value << (32 - bits)) >> (32 - bits);
}

// Of a register that is no way to jump.
static inline void code_arm_lose(const struct code_arm *a, unsigned reg)
{
    if (reg != CODE_ARM_PC)
        code_lose(a->in, reg);
}

static inline void code_arm_lose_flags(const struct code_arm *a)
{
    code_add(a->in, CODE_OP_COMPARE, CODE_REG_NONE, CODE_REG_NONE);
}

static inline void code_arm_stop(const struct code_arm *a)
{
    a->in->flow = CODE_STOP;
}

static inline void code_arm_unknown(const struct code_arm *a)
{
    a->in->size_bytes = 0;
}

// A register that may be pc, read: pc is put into SCRATCH.
static inline unsigned code_arm_source(const struct code_arm *a, unsigned reg)
{
    if (reg != CODE_ARM_PC)
        return reg;
    code_set(a->in, CODE_REG_SCRATCH, CODE_REG_NONE, a->pc);
    return CODE_REG_SCRATCH;
}

static inline void code_arm_go(const struct code_arm *a, enum code_flow flow, uint32_t target, unsigned mode)
{
    a->in->flow = (uint8_t)flow;
    a->in->target = target;
    a->in->target_mode = (uint8_t)mode;
}

static inline void code_arm_system_call(const struct code_arm *a)
{
    a->in->flow = CODE_SYSTEM;
    code_lose(a->in, 0);
}

#endif
