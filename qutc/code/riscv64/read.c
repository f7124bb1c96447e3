// SPDX-License-Identifier: Apache-2.0
// Instructions of four bytes, by their major opcode. Vendors' own are not known.
#include "qutc/code/riscv64/inside.h"

enum { CSR_VLENB = 0xc22 };

struct fields {
    uint32_t word;
    unsigned to, from, other, function, function7;
    int64_t immediate; // of the I type
};

static void load(struct code_instruction *in, const struct fields *f)
{
    if (f->function == 7)
        code_rv_lose(in, f->to);
    else
        code_rv_load(in, f->to, f->from, f->immediate, 1u << (f->function & 3), !(f->function & 4));
}

static int64_t store_offset(const struct fields *f)
{
    return code_rv_signed(f->function7 << 5 | f->to, 12);
}

// Those of vectors have a size that is not known, and are of places that nothing else is kept in.
static void store_float(struct code_instruction *in, const struct fields *f)
{
    if (f->function >= 1 && f->function <= 4)
        code_rv_store(in, f->from, store_offset(f), CODE_RV_ZERO, 1u << f->function);
}

static void by_constant(struct code_instruction *in, const struct fields *f)
{
    if (f->to == CODE_RV_ZERO) {
        in->is_padding = f->word == 0x13;
    } else if (f->function == 0) {
        code_rv_set(in, f->to, f->from, f->immediate);
    } else if (f->function == 7 && f->from != CODE_RV_ZERO) {
        code_add(in, CODE_OP_AND, f->to, f->from)->number = f->immediate;
    } else if (f->function == 1 && f->function7 >> 1 == 0 && f->from != CODE_RV_ZERO) { // slli
        code_add(in, CODE_OP_SHIFT, f->to, f->from)->shift = (uint8_t)code_rv_field(f->word, 20, 6);
    } else {
        code_lose(in, f->to);
    }
}

static void by_constant_word(struct code_instruction *in, const struct fields *f)
{
    if (f->function == 0)
        code_rv_set_word(in, f->to, f->from, f->immediate);
    else
        code_rv_lose(in, f->to);
}

static void of_registers(struct code_instruction *in, const struct fields *f)
{
    bool is_shifted_add = f->function7 == 0x10 && !(f->function & 1); // sh1add, sh2add, sh3add
    if (f->function7 == 0 && f->function == 0)
        code_rv_sum(in, f->to, f->from, f->other, 0, false);
    else if (f->function7 == 0x20 && f->function == 0)
        code_rv_sum(in, f->to, f->from, f->other, 0, true);
    else if (is_shifted_add && f->function != 0)
        code_rv_sum(in, f->to, f->other, f->from, f->function / 2, false);
    else
        code_rv_lose(in, f->to);
}

// add.uw, sh1add.uw and others: of a word that is an unsigned index.
static void of_registers_word(struct code_instruction *in, const struct fields *f)
{
    bool is_add = f->function7 == 4 && f->function == 0;
    bool is_shifted_add = f->function7 == 0x10 && f->function != 0 && !(f->function & 1);
    if (!(is_add || is_shifted_add) || f->from == CODE_RV_ZERO || f->to == CODE_RV_ZERO) {
        code_rv_lose(in, f->to);
    } else if (is_add && f->other == CODE_RV_ZERO) { // zext.w
        code_rv_extend(in, f->to, f->from, 4, false);
    } else {
        code_rv_extend(in, CODE_REG_SCRATCH, f->from, 4, false);
        code_rv_sum(in, f->to, f->other, CODE_REG_SCRATCH, f->function / 2, false);
    }
}

static void atomic(struct code_instruction *in, const struct fields *f)
{
    bool is_load_reserved = f->function7 >> 2 == 2;
    if (!is_load_reserved)
        code_rv_store(in, f->from, 0, CODE_RV_ZERO, 1u << (f->function & 7));
    code_rv_lose(in, f->to);
    if (f->function == 4) // amocas.q
        code_rv_lose(in, f->to | 1);
}

// Comparisons, conversions to integers, moves and classes; all else is of floating-point registers.
static void floating(struct code_instruction *in, const struct fields *f)
{
    unsigned operation = f->function7 >> 2;
    if (operation == 0x14 || operation == 0x18 || operation == 0x1c)
        code_rv_lose(in, f->to);
}

// vsetvl and its like; vmv.x.s, vcpop, vfirst.
static void vectors(struct code_instruction *in, const struct fields *f)
{
    if (f->function == 7 || (f->function == 2 && f->word >> 26 == 0x10))
        code_rv_lose(in, f->to);
}

static void branch(struct code_instruction *in, const struct fields *f, uint64_t vaddr)
{
    static const uint8_t when_of[8] = {
        [0] = CODE_WHEN_EQUAL, [1] = CODE_WHEN_UNEQUAL, [6] = CODE_WHEN_BELOW, [7] = CODE_WHEN_AT_LEAST};
    uint32_t offset = code_rv_bits(f->word, 31, 1, 12) | code_rv_bits(f->word, 7, 1, 11) |
                      code_rv_bits(f->word, 25, 6, 5) | code_rv_bits(f->word, 8, 4, 1);
    if (f->function == 2 || f->function == 3) {
        in->size_bytes = 0;
        return;
    }
    code_rv_compare(in, f->from, f->other);
    in->flow = CODE_BRANCH;
    in->when = when_of[f->function];
    in->target = vaddr + (uint64_t)code_rv_signed(offset, 13);
}

static void jump(struct code_instruction *in, const struct fields *f, uint64_t vaddr)
{
    uint32_t offset = code_rv_bits(f->word, 31, 1, 20) | code_rv_bits(f->word, 12, 8, 12) |
                      code_rv_bits(f->word, 20, 1, 11) | code_rv_bits(f->word, 21, 10, 1);
    in->flow = f->to == CODE_RV_ZERO ? CODE_JUMP : CODE_CALL;
    in->target = vaddr + (uint64_t)code_rv_signed(offset, 21);
    if (f->to != CODE_RV_ZERO && f->to != CODE_RV_RA)
        code_lose(in, CODE_RV_SP); // as code_rv_jump_register says
}

static void system_instruction(struct code_instruction *in, const struct fields *f)
{
    if (f->word == 0x73) { // ecall
        in->flow = CODE_SYSTEM;
        code_lose(in, CODE_RV_A0);
    } else if (f->function == 0) { // ebreak, returns from traps; what waits, or orders memory, goes on
        bool goes_on = f->word == 0x10500073 || f->function7 == 0x09 || f->function7 == 0x0b || f->function7 == 0x0c ||
                       f->function7 == 0x11 || f->function7 == 0x31 || f->function7 == 0x13 || f->function7 == 0x33 ||
                       f->word == 0x00d00073 || f->word == 0x01d00073;
        in->flow = goes_on ? CODE_NEXT : CODE_STOP;
        code_rv_lose(in, f->to);
    } else if (f->function == 2 && f->from == CODE_RV_ZERO && f->word >> 20 == CSR_VLENB && f->to != CODE_RV_ZERO) {
        code_add(in, CODE_OP_VECTOR, f->to, CODE_REG_NONE)->number = 1;
    } else {
        code_rv_lose(in, f->to);
    }
}

static void read_word(struct code_instruction *in, const struct fields *f, uint64_t vaddr)
{
    int64_t upper = (int32_t)(f->word & 0xfffff000);
    switch (f->word & 0x7f) {
    case 0x03: load(in, f); break;
    case 0x23:
        if (f->function <= 3)
            code_rv_store(in, f->from, store_offset(f), f->other, 1u << f->function);
        else
            in->size_bytes = 0;
        break;
    case 0x27: store_float(in, f); break;
    case 0x0f: // fences; those that came later have rd
        if (f->function > 2)
            code_rv_lose(in, f->to);
        break;
    case 0x13: by_constant(in, f); break;
    case 0x1b: by_constant_word(in, f); break;
    case 0x17: // auipc; lpad
        in->is_landing = f->to == CODE_RV_ZERO;
        code_rv_set(in, f->to, CODE_RV_ZERO, (int64_t)(vaddr + (uint64_t)upper));
        break;
    case 0x37: code_rv_set(in, f->to, CODE_RV_ZERO, upper); break;
    case 0x33: of_registers(in, f); break;
    case 0x3b: of_registers_word(in, f); break;
    case 0x2f: atomic(in, f); break;
    case 0x53: floating(in, f); break;
    case 0x57: vectors(in, f); break;
    case 0x63: branch(in, f, vaddr); break;
    case 0x67:
        if (f->function == 0)
            code_rv_jump_register(in, f->to, f->from, f->immediate);
        else
            in->size_bytes = 0;
        break;
    case 0x6f: jump(in, f, vaddr); break;
    case 0x73: system_instruction(in, f); break;
    case 0x07: // loads of floating-point registers and vectors
    case 0x43: // fmadd and its like
    case 0x47:
    case 0x4b:
    case 0x4f:
    case 0x77: break; // of vectors
    default: in->size_bytes = 0; break;
    }
}

void code_read_riscv64(struct base_bytes code, uint64_t vaddr, unsigned mode, struct code_instruction *in)
{
    (void)mode;
    struct base_cursor c = base_cursor(code);
    uint32_t word = base_read_u16(&c);
    code_begin(in);
    if (c.failed)
        return;
    if ((word & 3) != 3) {
        in->size_bytes = 2;
        code_rv_compressed(in, word, vaddr);
        return;
    }
    word |= (uint32_t)base_read_u16(&c) << 16;
    if (c.failed || (word & 0x1f) == 0x1f) // longer ones
        return;
    in->size_bytes = 4;
    struct fields f = {.word = word,
                       .to = code_rv_field(word, 7, 5),
                       .from = code_rv_field(word, 15, 5),
                       .other = code_rv_field(word, 20, 5),
                       .function = code_rv_field(word, 12, 3),
                       .function7 = word >> 25,
                       .immediate = (int32_t)word >> 20};
    read_word(in, &f, vaddr);
}
