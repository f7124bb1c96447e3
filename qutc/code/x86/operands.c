// SPDX-License-Identifier: Apache-2.0
// What the judges of instructions share: registers by their names in DWARF, operands in memory.
#include "qutc/code/x86/inside.h"

unsigned code_x86_word(const struct code_x86 *x)
{
    return x->is_64 ? 8 : 4;
}

unsigned code_x86_operand_bytes(const struct code_x86 *x)
{
    return x->rex & 8 ? 8 : x->half_operand ? 2 : 4;
}

unsigned code_x86_dwarf(const struct code_x86 *x, unsigned number)
{
    // System V AMD64 psABI, figure 3.36: ax dx cx bx si di bp sp.
    static const uint8_t low[] = {0, 2, 1, 3, 7, 6, 4, 5};
    return x->is_64 && number < 8 ? low[number] : number;
}

void code_x86_lose(const struct code_x86 *x, struct code_instruction *in, unsigned number)
{
    code_lose(in, code_x86_dwarf(x, number));
}

void code_x86_lose_sized(const struct code_x86 *x, struct code_instruction *in, unsigned number, unsigned bytes)
{
    bool is_high = bytes == 1 && !x->has_rex && number >= 4 && number < 8;
    code_x86_lose(x, in, is_high ? number - 4 : number);
}

void code_x86_write_rm(const struct code_x86 *x, struct code_instruction *in, unsigned bytes)
{
    if (x->mode == 3)
        code_x86_lose_sized(x, in, x->low, bytes);
    else
        code_x86_store(x, in, NO_NUMBER, bytes);
}

// Whether the address is a register's value and more, or a number alone, as the follower can say it.
static bool has_address(const struct code_x86 *x)
{
    return x->has_modrm && x->mode != 3 && !x->by_segment && !x->other_address;
}

void code_x86_load(const struct code_x86 *x, uint64_t vaddr, struct code_instruction *in, unsigned to, unsigned bytes,
                   bool is_signed)
{
    if (!has_address(x)) {
        code_lose(in, to);
        return;
    }
    bool is_indexed = x->index != NO_NUMBER;
    unsigned base = x->base == NO_NUMBER ? CODE_REG_NONE : code_x86_dwarf(x, x->base);
    struct code_op *op = code_add(in, is_indexed ? CODE_OP_INDEXED : CODE_OP_LOAD, to, base);
    op->number = x->displacement;
    if (x->by_pc)
        op->number += (int64_t)(vaddr + x->size_bytes);
    else if (base == CODE_REG_NONE && !x->is_64)
        op->number = (uint32_t)x->displacement;
    if (is_indexed)
        op->other = (uint8_t)code_x86_dwarf(x, x->index);
    op->shift = x->scale;
    op->size_bytes = (uint8_t)bytes;
    op->negative = is_signed;
}

// What goes to a place that is chosen by an index is an element of an array: it does not hit what is saved elsewhere.
void code_x86_store(const struct code_x86 *x, struct code_instruction *in, unsigned from, unsigned bytes)
{
    if (!has_address(x) || x->by_pc || x->base == NO_NUMBER || x->index != NO_NUMBER)
        return;
    code_store(in, code_x86_dwarf(x, x->base), x->displacement,
               from == NO_NUMBER ? CODE_REG_NONE : code_x86_dwarf(x, from), bytes);
}

void code_x86_go_to(const struct code_x86 *x, uint64_t vaddr, struct code_instruction *in, unsigned flow)
{
    in->flow = (uint8_t)flow;
    in->target = vaddr + x->size_bytes + (uint64_t)x->number;
    if (!x->is_64)
        in->target &= x->half_operand ? UINT16_MAX : UINT32_MAX;
}

void code_x86_go_if(const struct code_x86 *x, uint64_t vaddr, struct code_instruction *in, unsigned condition)
{
    static const uint8_t when[16] = {[2] = CODE_WHEN_BELOW,   [3] = CODE_WHEN_AT_LEAST, [4] = CODE_WHEN_EQUAL,
                                     [5] = CODE_WHEN_UNEQUAL, [6] = CODE_WHEN_AT_MOST,  [7] = CODE_WHEN_ABOVE};
    code_x86_go_to(x, vaddr, in, CODE_BRANCH);
    in->when = when[condition];
}
