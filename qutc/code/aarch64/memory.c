// SPDX-License-Identifier: Apache-2.0
// Loads and stores.
#include "qutc/code/aarch64/inside.h"

enum { AFTER = 1, OFFSET = 2, BEFORE = 3 }; // when the base is changed

// One or two registers of one size, side by side.
struct transfer {
    unsigned base, mode;
    int64_t offset;
    unsigned reg[2], count; // CODE_REG_NONE: zr, or a vector
    unsigned bytes;
    bool loads, is_signed, is_lost; // is_lost: what is loaded cannot be said
};

static void load(struct code_instruction *in, const struct transfer *t, unsigned i, int64_t offset)
{
    if (t->reg[i] == CODE_REG_NONE)
        return;
    if (t->is_lost) {
        code_lose(in, t->reg[i]);
        return;
    }
    code_load(in, t->reg[i], t->base, offset + (int64_t)(i * t->bytes), t->bytes);
    in->ops[in->op_count - 1].negative = t->is_signed;
}

static void put(struct code_instruction *in, const struct transfer *t)
{
    int64_t offset = t->mode == AFTER ? 0 : t->offset;
    if (t->mode == BEFORE) { // first, so that nothing is stored below sp
        code_set(in, t->base, t->base, t->offset);
        offset = 0;
    }
    if (!t->loads) {
        for (unsigned i = 0; i < t->count; i++) {
            bool is_unsure = t->mode == BEFORE && t->reg[i] == t->base; // processors differ
            code_store(in, t->base, offset + (int64_t)(i * t->bytes), is_unsure ? CODE_REG_NONE : t->reg[i], t->bytes);
        }
    } else { // the base last
        unsigned last = t->count == 2 && t->reg[0] == t->base ? 0 : t->count - 1;
        for (unsigned i = 0; i < t->count; i++)
            if (i != last)
                load(in, t, i, offset);
        load(in, t, last, offset);
    }
    if (t->mode == AFTER)
        code_set(in, t->base, t->base, t->offset);
}

static void pair(struct code_instruction *in, uint32_t word)
{
    unsigned mode = code_a64_field(word, 23, 2), width = word >> 30; // mode 0: non-temporal
    bool is_vector = word >> 26 & 1, loads = word >> 22 & 1;
    unsigned bytes = is_vector ? (width == 3 ? 16 : 4u << width) : width == 2 || width == 3 ? 8 : 4;
    bool is_tagged = !is_vector && width == 1 && !loads; // stgp: two words, offsets in 16
    struct transfer t = {
        .base = code_a64_field(word, 5, 5),
        .mode = mode == 0 ? OFFSET : mode,
        .offset = code_a64_signed(word, 15, 7) * (is_tagged ? 16 : bytes),
        .reg = {code_a64_or_none(code_a64_field(word, 0, 5)), code_a64_or_none(code_a64_field(word, 10, 5))},
        .count = 2,
        .bytes = is_tagged ? 8 : bytes,
        .loads = loads,
        .is_signed = width == 1,
    };
    if (is_vector)
        t.reg[0] = t.reg[1] = CODE_REG_NONE;
    put(in, &t);
}

// What a field of size and one of operation say, of general registers and vectors.
struct shape {
    unsigned bytes;
    bool loads, is_signed, is_lost, is_prefetch;
};

static struct shape shape_of(uint32_t word)
{
    unsigned size = word >> 30, operation = code_a64_field(word, 22, 2);
    if (word >> 26 & 1)
        return (struct shape){.bytes = operation >> 1 ? 16 : 1u << size, .loads = operation & 1};
    return (struct shape){.bytes = 1u << size,
                          .loads = operation != 0,
                          .is_signed = operation >= 2,
                          .is_lost = operation == 3, // extended to 32 bits
                          .is_prefetch = size == 3 && operation == 2};
}

// The index is a register.
static void indexed(struct code_instruction *in, uint32_t word, struct shape s)
{
    unsigned reg = word >> 26 & 1 ? CODE_REG_NONE : code_a64_or_none(code_a64_field(word, 0, 5));
    if (s.is_prefetch || (s.loads && reg == CODE_REG_NONE))
        return;
    unsigned base = code_a64_field(word, 5, 5);
    unsigned index = code_a64_index(in, code_a64_field(word, 16, 5), code_a64_field(word, 13, 3));
    if (index == CODE_REG_NONE) {
        if (s.loads)
            code_lose(in, reg);
    } else if (!s.loads) { // somewhere
        struct code_op *sum = code_add(in, CODE_OP_ADD, CODE_REG_SCRATCH, base);
        sum->other = (uint8_t)index;
        sum->shift = word >> 12 & 1 ? (uint8_t)__builtin_ctz(s.bytes) : 0;
        code_store(in, CODE_REG_SCRATCH, 0, reg, s.bytes);
    } else if (s.is_lost) {
        code_lose(in, reg);
    } else {
        struct code_op *op = code_add(in, CODE_OP_INDEXED, reg, base);
        op->other = (uint8_t)index;
        op->shift = word >> 12 & 1 ? (uint8_t)__builtin_ctz(s.bytes) : 0;
        op->size_bytes = (uint8_t)s.bytes;
        op->negative = s.is_signed;
    }
}

// Atomic operations: memory becomes something, the old value goes to a register.
static void atomic(struct code_instruction *in, uint32_t word)
{
    unsigned reg = code_a64_field(word, 0, 5), operation = code_a64_field(word, 12, 4);
    if (word >> 26 & 1) // of floating-point numbers
        return;
    if (operation != 12 && operation != 13) // ldapr, ld64b
        code_store(in, code_a64_field(word, 5, 5), 0, CODE_REG_NONE, operation >= 9 ? 64 : 1u << (word >> 30));
    if (operation == 10 || operation == 11) // st64bv: a status
        code_a64_lose(in, code_a64_field(word, 16, 5));
    else if (operation == 13) // ld64b
        for (unsigned i = reg; i < reg + 8 && i < CODE_A64_ZR; i++)
            code_lose(in, i);
    else if (operation != 9)
        code_a64_lose(in, reg);
}

static void single(struct code_instruction *in, uint32_t word)
{
    bool is_scaled = word >> 24 & 1;
    unsigned kind = code_a64_field(word, 10, 2);
    struct shape s = shape_of(word);
    struct transfer t = {
        .base = code_a64_field(word, 5, 5),
        .mode = OFFSET,
        .reg = {word >> 26 & 1 ? CODE_REG_NONE : code_a64_or_none(code_a64_field(word, 0, 5))},
        .count = 1,
        .bytes = s.bytes,
        .loads = s.loads,
        .is_signed = s.is_signed,
        .is_lost = s.is_lost,
    };
    if (is_scaled) {
        t.offset = (int64_t)code_a64_field(word, 10, 12) * s.bytes;
    } else if (!(word >> 21 & 1)) {
        t.offset = code_a64_signed(word, 12, 9);
        if (kind == AFTER || kind == BEFORE)
            t.mode = kind;
        else if (kind == 2) // unprivileged
            s.is_prefetch = false;
    } else if (kind == 0) {
        atomic(in, word);
        return;
    } else if (kind == 2) {
        indexed(in, word, s);
        return;
    } else { // ldraa, ldrab: of an authenticated address
        t.mode = word >> 11 & 1 ? BEFORE : OFFSET;
        t.offset = (code_a64_signed(word, 22, 1) * 512 + code_a64_field(word, 12, 9)) * 8;
        t.loads = t.is_lost = true;
        s.is_prefetch = false;
    }
    if (!s.is_prefetch)
        put(in, &t);
}

// Exclusive, ordered, compare and swap.
static void exclusive(struct code_instruction *in, uint32_t word)
{
    unsigned reg = code_a64_field(word, 0, 5), second = code_a64_field(word, 10, 5),
             status = code_a64_field(word, 16, 5);
    bool is_ordered = word >> 23 & 1, loads = word >> 22 & 1, is_pair = word >> 21 & 1;
    unsigned bytes = 1u << (word >> 30);
    bool is_swap = is_pair && (is_ordered || !(word >> 31)); // cas, casp
    if (!loads || is_swap) {
        unsigned from = loads || is_swap || is_pair || !is_ordered ? CODE_REG_NONE : code_a64_or_none(reg);
        code_store(in, code_a64_field(word, 5, 5), 0, from, is_pair && !is_ordered ? 16 : bytes);
    }
    if (word >> 24 & 1) { // without privileges: whatever it may be
        code_a64_lose(in, reg);
        code_a64_lose(in, second);
        code_a64_lose(in, status);
        code_a64_lose(in, status | 1);
    } else if (is_swap) {
        code_a64_lose(in, status);
        if (!is_ordered)
            code_a64_lose(in, status | 1);
    } else if (loads) {
        code_a64_lose(in, reg);
        if (is_pair)
            code_a64_lose(in, second);
    } else if (!is_ordered) {
        code_a64_lose(in, status);
    }
}

// Tags of memory; some write zeros, too.
static void tags(struct code_instruction *in, uint32_t word)
{
    unsigned kind = code_a64_field(word, 10, 2), operation = code_a64_field(word, 22, 2);
    if (kind == 0) { // of many at a time; ldg, ldgm
        if (operation & 1)
            code_a64_lose(in, code_a64_field(word, 0, 5));
        return;
    }
    struct transfer t = {
        .base = code_a64_field(word, 5, 5),
        .mode = kind,
        .offset = code_a64_signed(word, 12, 9) * 16,
        .reg = {CODE_REG_NONE},
        .count = operation & 1, // stzg, stz2g
        .bytes = operation == 3 ? 32 : 16,
    };
    put(in, &t);
}

// Loads and stores that came later: ordered ones with an offset, copies of blocks, pairs that are atomic.
static void later(struct code_instruction *in, uint32_t word)
{
    unsigned reg = code_a64_field(word, 0, 5), base = code_a64_field(word, 5, 5), second = code_a64_field(word, 16, 5);
    unsigned kind = code_a64_field(word, 10, 2);
    bool is_vector = word >> 26 & 1, has_21 = word >> 21 & 1;
    if (!has_21 && (kind == 0 || (is_vector && kind == 2))) { // stlur, ldapur
        struct shape s = shape_of(word);
        struct transfer t = {.base = base,
                             .mode = OFFSET,
                             .offset = code_a64_signed(word, 12, 9),
                             .reg = {is_vector ? CODE_REG_NONE : code_a64_or_none(reg)},
                             .count = !s.is_prefetch,
                             .bytes = s.bytes,
                             .loads = s.loads,
                             .is_signed = s.is_signed,
                             .is_lost = s.is_lost};
        if (t.count)
            put(in, &t);
    } else if (has_21 && word >> 24 == 0xd9) {
        tags(in, word);
    } else if (!has_21 && kind == 2) { // stilp, ldiapp, stlr, ldapr: the base may be changed
        code_a64_lose(in, reg);
        code_a64_lose(in, second);
        code_lose(in, base);
    } else { // copies and fills; atomics of pairs
        code_a64_lose(in, reg);
        code_a64_lose(in, second);
        code_a64_lose(in, base);
        code_a64_lose(in, reg | 1);
        code_a64_lose(in, second | 1);
    }
}

// One to four vectors, whole or an element of each.
static void structures(struct code_instruction *in, uint32_t word)
{
    static const uint8_t registers[16] = {[0] = 4, [2] = 4, [4] = 3, [6] = 3, [7] = 1, [8] = 2, [10] = 2};
    unsigned base = code_a64_field(word, 5, 5), by = code_a64_field(word, 16, 5);
    bool is_whole = !(word >> 24 & 1), loads = word >> 22 & 1, writes_back = word >> 23 & 1;
    unsigned operation = code_a64_field(word, 12, 4), bytes;
    if (is_whole) {
        bytes = registers[operation] * (word >> 30 & 1 ? 16u : 8u);
    } else {
        unsigned scale = operation >> 2, size = code_a64_field(word, 10, 2); // 3: one, to all elements
        unsigned element = scale == 3 ? 1u << size : scale == 2 ? (size & 1 ? 8 : 4) : 1u << scale;
        bytes = element * (((operation & 2) | (word >> 21 & 1)) + 1);
    }
    if (!loads)
        code_store(in, base, 0, CODE_REG_NONE, bytes);
    if (writes_back && by == CODE_A64_ZR)
        code_set(in, base, base, bytes);
    else if (writes_back)
        code_lose(in, base);
}

static void literal(struct code_instruction *in, uint32_t word, uint64_t vaddr)
{
    unsigned reg = code_a64_field(word, 0, 5), operation = word >> 30;
    if ((word >> 26 & 1) || operation == 3 || reg == CODE_A64_ZR) // vectors, prefetches
        return;
    struct code_op *op = code_add(in, CODE_OP_INDEXED, reg, CODE_REG_NONE);
    op->number = (int64_t)(vaddr + (uint64_t)code_a64_signed(word, 5, 19) * 4);
    op->size_bytes = operation == 1 ? 8 : 4;
    op->negative = operation == 2;
}

void code_a64_memory(struct code_instruction *in, uint32_t word, uint64_t vaddr)
{
    if ((word & 0x3a000000) == 0x28000000)
        pair(in, word);
    else if ((word & 0x3a000000) == 0x38000000)
        single(in, word);
    else if ((word & 0x3b000000) == 0x18000000)
        literal(in, word, vaddr);
    else if ((word & 0x3b000000) == 0x19000000)
        later(in, word);
    else if ((word & 0x3e000000) == 0x08000000)
        exclusive(in, word);
    else if ((word & 0xbe000000) == 0x0c000000)
        structures(in, word);
    else
        in->size_bytes = 0;
}
