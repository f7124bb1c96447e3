// SPDX-License-Identifier: Apache-2.0
// Data processing with a constant.
#include "qutc/code/aarch64/inside.h"

static void add_or_subtract(struct code_instruction *in, uint32_t word)
{
    unsigned to = code_a64_field(word, 0, 5), from = code_a64_field(word, 5, 5);
    bool sets_flags = word >> 29 & 1, is_wide = word >> 31, subtracts = word >> 30 & 1;
    int64_t number = (int64_t)code_a64_field(word, 10, 12) << (word >> 22 & 1 ? 12 : 0);
    if (sets_flags && subtracts) {
        struct code_op *op = code_add(in, CODE_OP_COMPARE, CODE_REG_NONE, from);
        op->number = number;
        op->size_bytes = is_wide ? 8 : 4;
    } else if (sets_flags) {
        code_a64_lose_flags(in);
    }
    if (sets_flags && to == CODE_A64_ZR)
        return;
    code_set(in, to, from, subtracts ? -number : number);
    code_a64_narrow(in, to, is_wide);
}

// Arm ARM, DecodeBitMasks: a run of ones, rotated, in an element that is repeated. 0: not allocated.
static uint64_t bit_mask(uint32_t word)
{
    unsigned ones_code = code_a64_field(word, 10, 6), rotate = code_a64_field(word, 16, 6), bits = 64;
    if (!(word >> 22 & 1)) {
        unsigned inverted = ~ones_code & 63;
        if (inverted < 2)
            return 0;
        for (bits = 32; !(inverted & bits); bits /= 2)
            ;
    }
    unsigned ones = (ones_code & (bits - 1)) + 1;
    if (ones == bits)
        return 0;
    uint64_t element = ((uint64_t)1 << ones) - 1, whole = bits == 64 ? ~(uint64_t)0 : ((uint64_t)1 << bits) - 1;
    rotate &= bits - 1;
    if (rotate)
        element = (element >> rotate | element << (bits - rotate)) & whole;
    for (; bits < 64; bits *= 2)
        element |= element << bits;
    return word >> 31 ? element : element & 0xffffffff;
}

static void logical(struct code_instruction *in, uint32_t word)
{
    unsigned to = code_a64_field(word, 0, 5), from = code_a64_field(word, 5, 5),
             operation = code_a64_field(word, 29, 2);
    uint64_t mask = bit_mask(word);
    if (operation == 3) { // ands, tst
        code_a64_lose_flags(in);
        if (to == CODE_A64_ZR)
            return;
    }
    if (mask && from != CODE_A64_ZR && (operation == 0 || operation == 3))
        code_add(in, CODE_OP_AND, to, from)->number = (int64_t)mask;
    else if (mask && from == CODE_A64_ZR && operation == 1) // mov: orr with zr
        code_set(in, to, CODE_REG_NONE, (int64_t)mask);
    else
        code_lose(in, to);
}

static void move_wide(struct code_instruction *in, uint32_t word)
{
    unsigned to = code_a64_field(word, 0, 5), shift = code_a64_field(word, 21, 2) * 16;
    uint64_t part = (uint64_t)code_a64_field(word, 5, 16);
    bool is_wide = word >> 31;
    if (to == CODE_A64_ZR)
        return;
    switch (code_a64_field(word, 29, 2)) {
    case 0: // movn
        part = ~(part << shift);
        code_set(in, to, CODE_REG_NONE, (int64_t)(is_wide ? part : part & 0xffffffff));
        break;
    case 2: code_set(in, to, CODE_REG_NONE, (int64_t)(part << shift)); break;
    case 3: {
        struct code_op *op = code_add(in, CODE_OP_INSERT, to, to);
        op->number = (int64_t)part;
        op->shift = (uint8_t)shift;
        op->size_bytes = 2;
        code_a64_narrow(in, to, is_wide);
        break;
    }
    default: code_lose(in, to); break;
    }
}

// Of the many names of these, shifts to the left and extensions are of use.
static void bit_field(struct code_instruction *in, uint32_t word)
{
    unsigned to = code_a64_field(word, 0, 5), from = code_a64_or_none(code_a64_field(word, 5, 5));
    unsigned first = code_a64_field(word, 16, 6), last = code_a64_field(word, 10, 6),
             operation = code_a64_field(word, 29, 2);
    bool is_wide = word >> 31, is_unsigned = operation == 2;
    unsigned bits = is_wide ? 64 : 32;
    if (to == CODE_A64_ZR)
        return;
    if (from == CODE_REG_NONE || operation == 1 || operation == 3) {
        code_lose(in, to);
    } else if (first == 0 && (last == 7 || last == 15 || last == 31) && (is_unsigned || is_wide)) {
        code_a64_extend(in, to, from, (last + 1) / 8, !is_unsigned);
    } else if (is_unsigned && last != bits - 1 && last + 1 == first) { // lsl
        code_add(in, CODE_OP_SHIFT, to, from)->shift = (uint8_t)(bits - first);
        code_a64_narrow(in, to, is_wide);
    } else {
        code_lose(in, to);
    }
}

void code_a64_immediate(struct code_instruction *in, uint32_t word, uint64_t vaddr)
{
    unsigned to = code_a64_field(word, 0, 5);
    int64_t place = (int64_t)((uint64_t)code_a64_signed(word, 5, 19) << 2 | code_a64_field(word, 29, 2));
    switch (code_a64_field(word, 23, 3)) {
    case 0:
    case 1: // adr, adrp
        if (to == CODE_A64_ZR)
            break;
        if (word >> 31)
            code_set(in, to, CODE_REG_NONE, (int64_t)((vaddr & ~(uint64_t)4095) + ((uint64_t)place << 12)));
        else
            code_set(in, to, CODE_REG_NONE, (int64_t)(vaddr + (uint64_t)place));
        break;
    case 2: add_or_subtract(in, word); break;
    case 3:
        if (word >> 22 & 1) // smax, smin, umax, umin
            code_a64_lose(in, to);
        else // addg, subg: sp by number 31
            code_lose(in, to);
        break;
    case 4: logical(in, word); break;
    case 5: move_wide(in, word); break;
    case 6: bit_field(in, word); break;
    default:
        if ((word & 0xffc0001f) == 0xf380001f) // autiasppc, autibsppc
            code_add(in, CODE_OP_AUTH, CODE_A64_LR, CODE_REG_NONE);
        else // extr
            code_a64_lose(in, to);
        break;
    }
}
