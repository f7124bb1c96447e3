// SPDX-License-Identifier: Apache-2.0
// Data processing with registers alone, vectors included: those have few results outside vectors.
#include "qutc/code/aarch64/inside.h"

// Operations that sign or authenticate, by their code: x30, with sp. Those that are none have 0.
enum { SIGN_A = 1, SIGN_B, AUTHENTICATE };
static const uint8_t of_addresses[64] = {
    [0] = SIGN_A,        [1] = SIGN_B,        [4] = AUTHENTICATE,  [5] = AUTHENTICATE, // pacia, autia
    [8] = SIGN_A,        [9] = SIGN_B,        [12] = AUTHENTICATE, [13] = AUTHENTICATE,
    [16] = AUTHENTICATE, // ... with zero; xpaci
    [32] = SIGN_A,       [33] = SIGN_B,       [40] = SIGN_A,       [41] = SIGN_B,
    [36] = AUTHENTICATE, [37] = AUTHENTICATE, // ... with pc
};

static void one_source(struct code_instruction *in, uint32_t word)
{
    unsigned to = code_a64_field(word, 0, 5), operation = code_a64_field(word, 10, 6);
    bool with_pc = operation >= 32, by_sp = code_a64_field(word, 5, 5) == CODE_A64_SP;
    unsigned what = of_addresses[operation];
    if ((word & 0xffff0000) != 0xdac10000 || to != CODE_A64_LR) {
        code_a64_lose(in, to);
    } else if (with_pc && !what) { // pacia171615 and its like: of x17, whatever the number says
        code_lose(in, 17);
        code_lose(in, to);
    } else if (what && (by_sp || with_pc)) {
        struct code_op *op = code_add(in, what == AUTHENTICATE ? CODE_OP_AUTH : CODE_OP_SIGN, to, CODE_REG_NONE);
        op->number = what == SIGN_B;
    } else {
        code_lose(in, to);
    }
}

static void compare(struct code_instruction *in, unsigned from, unsigned other, bool is_wide)
{
    struct code_op *op = code_add(in, CODE_OP_COMPARE, CODE_REG_NONE, from);
    op->other = (uint8_t)other;
    op->size_bytes = is_wide ? 8 : 4;
}

// Of a shifted register, or of an extended one: there number 31 is sp.
static void add_or_subtract(struct code_instruction *in, uint32_t word)
{
    unsigned to = code_a64_field(word, 0, 5), from = code_a64_field(word, 5, 5), other = code_a64_field(word, 16, 5);
    bool is_wide = word >> 31, subtracts = word >> 30 & 1, sets_flags = word >> 29 & 1, is_extended = word >> 21 & 1;
    unsigned shift = is_extended ? code_a64_field(word, 10, 3) : code_a64_field(word, 10, 6);
    bool is_plain = is_extended || code_a64_field(word, 22, 2) == 0; // shifted to the left
    if (sets_flags && subtracts && is_plain && shift == 0 && other != CODE_A64_ZR &&
        (is_extended ? code_a64_field(word, 13, 2) == 3 : from != CODE_A64_ZR))
        compare(in, from, other, is_wide);
    else if (sets_flags)
        code_a64_lose_flags(in);
    if (to == CODE_A64_ZR && (sets_flags || !is_extended))
        return;
    if (!is_wide || !is_plain || (!is_extended && from == CODE_A64_ZR)) {
        code_lose(in, to);
        return;
    }
    other = is_extended ? code_a64_index(in, other, code_a64_field(word, 13, 3)) : code_a64_or_none(other);
    if (other == CODE_REG_NONE) {
        code_set(in, to, from, 0);
        return;
    }
    struct code_op *op = code_add(in, CODE_OP_ADD, to, from);
    op->other = (uint8_t)other;
    op->shift = (uint8_t)shift;
    op->negative = subtracts;
}

static void logical(struct code_instruction *in, uint32_t word)
{
    unsigned to = code_a64_field(word, 0, 5), other = code_a64_field(word, 16, 5);
    if (code_a64_field(word, 29, 2) == 3)
        code_a64_lose_flags(in);
    if (to == CODE_A64_ZR)
        return;
    bool is_move = (word & 0x7fe0ffe0) == 0x2a0003e0; // orr with zr
    if (is_move && other == CODE_A64_ZR) {
        code_set(in, to, CODE_REG_NONE, 0);
    } else if (is_move && word >> 31) {
        code_set(in, to, other, 0);
    } else if (is_move) {
        code_a64_extend(in, to, other, 4, false);
    } else {
        code_lose(in, to);
    }
}

void code_a64_registers(struct code_instruction *in, uint32_t word)
{
    unsigned to = code_a64_field(word, 0, 5);
    if ((word & 0x1f000000) == 0x0b000000) {
        add_or_subtract(in, word);
    } else if ((word & 0x1f000000) == 0x0a000000) {
        logical(in, word);
    } else if ((word & 0xffe0fc00) == 0x9ac01000) { // irg: sp by number 31
        code_lose(in, to);
    } else if ((word & 0x5fe00000) == 0x5ac00000) {
        one_source(in, word);
    } else if ((word & 0x1fe00000) == 0x1a400000 || (word & 0xffe07c10) == 0xba000400 ||
               (word & 0xffffbc1f) == 0x3a00080d) { // ccmp, ccmn; rmif; setf8, setf16
        code_a64_lose_flags(in);
    } else {
        bool sets_flags = (word & 0x3fe00000) == 0x3a000000 || (word & 0xffe0fc00) == 0xbac00000; // adcs, sbcs, subps
        if (sets_flags)
            code_a64_lose_flags(in);
        code_a64_lose(in, to);
    }
}

// Conversions to integers, and moves of elements.
void code_a64_vectors(struct code_instruction *in, uint32_t word)
{
    unsigned to = code_a64_field(word, 0, 5), operation = code_a64_field(word, 16, 3);
    bool to_integer = (word & 0x5f20fc00) == 0x1e200000 && operation != 2 && operation != 3 && operation != 7;
    bool to_fixed = (word & 0x5f200000) == 0x1e000000 && operation < 2;
    bool moves_element = (word & 0xbfe0ec00) == 0x0e002c00;                                   // umov, smov
    bool sets_flags = (word & 0xff20fc07) == 0x1e202000 || (word & 0xff200c00) == 0x1e200400; // fcmp, fccmp
    if (to_integer || to_fixed || moves_element)
        code_a64_lose(in, to);
    if (sets_flags)
        code_a64_lose_flags(in);
}

static void put_vector(struct code_instruction *in, unsigned to, int64_t number)
{
    code_add(in, CODE_OP_VECTOR, to, CODE_REG_NONE)->number = number;
}

// Of scalable vectors: what counts their bytes, and what may write a general register in other ways.
void code_a64_scalable(struct code_instruction *in, uint32_t word)
{
    unsigned to = code_a64_field(word, 0, 5);
    if ((word & 0xffe0f800) == 0x04205000) { // addvl
        put_vector(in, CODE_REG_SCRATCH, code_a64_signed(word, 5, 6));
        code_add(in, CODE_OP_ADD, to, code_a64_field(word, 16, 5))->other = CODE_REG_SCRATCH;
    } else if ((word & 0xfffff800) == 0x04bf5000 && to != CODE_A64_ZR) { // rdvl
        put_vector(in, to, code_a64_signed(word, 5, 6));
    } else if ((word & 0xfff0ffe0) == 0x0420e3e0 && to != CODE_A64_ZR) { // cntb of all
        put_vector(in, to, code_a64_field(word, 16, 4) + 1);
    } else if ((word & 0xff20f000) == 0x04205000) { // addpl; those of streaming mode
        code_lose(in, to);
    } else if ((word & 0xff20e000) == 0x0420e000 || (word & 0xff20e000) == 0x0520a000 ||
               (word & 0xff20c000) == 0x25208000 || word >> 16 == 0xc04c) {
        code_a64_lose(in, to); // cntX, incX, sqincX; lasta, clasta; cntp, incp; movt
    }
    if (word >> 24 == 0x24 || word >> 24 == 0x25 || word >> 24 == 0x45) // compares, while, ptest
        code_a64_lose_flags(in);
}
