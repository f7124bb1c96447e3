// SPDX-License-Identifier: Apache-2.0
// Data processing, however it is encoded.
#include "qutc/code/arm/inside.h"

// Of what is written: pc is jumped to by SCRATCH.
static unsigned destination(unsigned to)
{
    return to == CODE_ARM_PC ? CODE_REG_SCRATCH : to;
}

static void finish(const struct code_arm *a, unsigned to, bool sets_flags)
{
    if (to != CODE_ARM_PC)
        return;
    a->in->flow = sets_flags ? CODE_STOP : CODE_JUMP; // with flags: a return from an exception
    a->in->through = CODE_REG_SCRATCH;
    a->in->target_mode = (uint8_t)a->mode;
}

static bool only_compares(unsigned operation)
{
    return operation >= CODE_ARM_TST && operation <= CODE_ARM_CMN;
}

void code_arm_data_number(const struct code_arm *a, unsigned operation, bool sets_flags, unsigned to, unsigned from,
                          uint32_t number)
{
    struct code_instruction *in = a->in;
    int64_t value = (int32_t)number;
    if (operation == CODE_ARM_CMP && from != CODE_ARM_PC) {
        struct code_op *op = code_add(in, CODE_OP_COMPARE, CODE_REG_NONE, from);
        op->number = number;
        op->size_bytes = 4;
    } else if (sets_flags || only_compares(operation)) {
        code_arm_lose_flags(a);
    }
    if (only_compares(operation))
        return;
    unsigned into = destination(to);
    bool of_pc = from == CODE_ARM_PC;
    switch (operation) {
    case CODE_ARM_MOV: code_set(in, into, CODE_REG_NONE, value); break;
    case CODE_ARM_MVN: code_set(in, into, CODE_REG_NONE, ~value); break;
    case CODE_ARM_ADD: // of pc: adr
        code_set(in, into, of_pc ? CODE_REG_NONE : from, of_pc ? (int64_t)(uint32_t)(a->literal + number) : value);
        break;
    case CODE_ARM_SUB:
        code_set(in, into, of_pc ? CODE_REG_NONE : from, of_pc ? (int64_t)(uint32_t)(a->literal - number) : -value);
        break;
    case CODE_ARM_AND:
    case CODE_ARM_BIC:
        if (of_pc)
            code_lose(in, into);
        else
            code_add(in, CODE_OP_AND, into, from)->number = operation == CODE_ARM_AND ? value : ~value;
        break;
    case CODE_ARM_ORR:
        if (of_pc)
            code_lose(in, into);
        else
            code_add(in, CODE_OP_OR, into, from)->number = value;
        break;
    default: code_lose(in, into); break;
    }
    finish(a, to, sets_flags);
}

static void sum(const struct code_arm *a, unsigned to, unsigned from, unsigned other, unsigned shift, bool subtracts)
{
    struct code_instruction *in = a->in;
    if (from == CODE_ARM_PC && other == CODE_ARM_PC) {
        code_lose(in, to);
        return;
    }
    if (other == CODE_ARM_PC && !subtracts && shift == 0) {
        other = from;
        from = CODE_ARM_PC;
    } else if (other == CODE_ARM_PC) {
        code_lose(in, to);
        return;
    }
    from = code_arm_source(a, from);
    struct code_op *op = code_add(in, CODE_OP_ADD, to, from);
    op->other = (uint8_t)other;
    op->shift = (uint8_t)shift;
    op->negative = subtracts;
}

void code_arm_data_register(const struct code_arm *a, unsigned operation, bool sets_flags, unsigned to, unsigned from,
                            unsigned other, unsigned shift, bool is_odd)
{
    struct code_instruction *in = a->in;
    if (operation == CODE_ARM_CMP && from != CODE_ARM_PC && other != CODE_ARM_PC && shift == 0 && !is_odd) {
        struct code_op *op = code_add(in, CODE_OP_COMPARE, CODE_REG_NONE, from);
        op->other = (uint8_t)other;
        op->size_bytes = 4;
    } else if (sets_flags || only_compares(operation)) {
        code_arm_lose_flags(a);
    }
    if (only_compares(operation))
        return;
    unsigned into = destination(to);
    if (operation == CODE_ARM_MOV && !is_odd && shift == 0) {
        if (to == CODE_ARM_PC && !sets_flags && other != CODE_ARM_PC) {
            code_arm_jump(a, other);
            in->target_mode = (uint8_t)a->mode;
            return;
        }
        code_set(in, into, other == CODE_ARM_PC ? CODE_REG_NONE : other, other == CODE_ARM_PC ? a->pc : 0);
    } else if (operation == CODE_ARM_MOV && !is_odd && other != CODE_ARM_PC) {
        code_add(in, CODE_OP_SHIFT, into, other)->shift = (uint8_t)shift;
    } else if ((operation == CODE_ARM_ADD || operation == CODE_ARM_SUB) && !is_odd) {
        sum(a, into, from, other, shift, operation == CODE_ARM_SUB);
    } else {
        code_lose(in, into);
    }
    finish(a, to, sets_flags);
}
