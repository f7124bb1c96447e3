// SPDX-License-Identifier: Apache-2.0
// T32, instructions of four bytes. `first` and `second` are their halves.
#include "qutc/code/arm/inside.h"

static void transfer_many(const struct code_arm *a, uint32_t first)
{
    unsigned way = code_arm_field(first, 7, 2);
    if (way == 0 || way == 3) // rfe, srs
        code_arm_unknown(a);
    else
        code_arm_transfer_many(a, first & 15, a->word & 0xffff, first >> 4 & 1, way == 1, way == 2, first >> 5 & 1);
}

// tbb, tbh: a table behind the instruction has half the distance to where it goes on.
static void table_branch(const struct code_arm *a, uint32_t first, uint32_t second)
{
    struct code_instruction *in = a->in;
    bool of_halves = second >> 4 & 1;
    if ((second & 15) == CODE_ARM_PC) {
        code_arm_unknown(a);
        return;
    }
    struct code_op *op = code_add(in, CODE_OP_INDEXED, CODE_REG_SCRATCH, code_arm_source(a, first & 15));
    op->other = (uint8_t)(second & 15);
    op->shift = of_halves;
    op->size_bytes = of_halves ? 2 : 1;
    code_add(in, CODE_OP_SHIFT, CODE_REG_SCRATCH, CODE_REG_SCRATCH)->shift = 1;
    code_set(in, CODE_REG_SCRATCH, CODE_REG_SCRATCH, a->pc);
    in->flow = CODE_JUMP;
    in->through = CODE_REG_SCRATCH;
    in->target_mode = 1;
}

static void exclusive(const struct code_arm *a, uint32_t first, uint32_t second)
{
    bool loads = first >> 4 & 1, is_word = !(first >> 7 & 1);
    unsigned kind = code_arm_field(second, 4, 4), reg = second >> 12, other = code_arm_field(second, 8, 4);
    if (!loads)
        code_store(a->in, first & 15, 0, CODE_REG_NONE, !is_word && (kind & 3) == 3 ? 8 : 4);
    if (is_word) {
        code_arm_lose(a, loads ? reg : other);
    } else if (loads && kind < 2) {
        table_branch(a, first, second);
    } else if (loads) {
        code_arm_lose(a, reg);
        if ((kind & 3) == 3)
            code_arm_lose(a, other);
    } else if (kind < 8 || kind >= 12) { // the rest is ordered, and has no status
        code_arm_lose(a, second & 15);
    }
}

static void transfer_two(const struct code_arm *a, uint32_t first, uint32_t second)
{
    bool before = first >> 8 & 1, up = first >> 7 & 1, writes_back = first >> 5 & 1;
    int32_t offset = (int32_t)(second & 0xff) * 4;
    if (!before && !writes_back) {
        exclusive(a, first, second);
        return;
    }
    struct code_arm_transfer t = {.reg = second >> 12,
                                  .base = first & 15,
                                  .index = CODE_REG_NONE,
                                  .offset = up ? offset : -offset,
                                  .loads = first >> 4 & 1,
                                  .before = before,
                                  .writes_back = writes_back,
                                  .bytes = 4};
    code_arm_transfer_two(a, &t, code_arm_field(second, 8, 4));
}

// The operations of A32 that have a number here.
static const uint8_t operations[16] = {
    CODE_ARM_AND, CODE_ARM_BIC,  CODE_ARM_ORR, CODE_ARM_MVN, CODE_ARM_EOR,  CODE_ARM_ELSE, CODE_ARM_ELSE, CODE_ARM_ELSE,
    CODE_ARM_ADD, CODE_ARM_ELSE, CODE_ARM_ADC, CODE_ARM_SBC, CODE_ARM_ELSE, CODE_ARM_SUB,  CODE_ARM_RSB,  CODE_ARM_ELSE,
};

// False: what has flags and no destination compares.
static bool data_operation(uint32_t first, uint32_t second, unsigned *operation)
{
    static const uint8_t compares[16] = {
        [0] = CODE_ARM_TST, [4] = CODE_ARM_TEQ, [8] = CODE_ARM_CMN, [13] = CODE_ARM_CMP};
    unsigned code = code_arm_field(first, 5, 4);
    bool no_source = (first & 15) == CODE_ARM_PC;
    *operation = operations[code];
    if (no_source && code == 2)
        *operation = CODE_ARM_MOV;
    else if (!no_source && code == 3)
        *operation = CODE_ARM_ELSE; // orn
    if (code_arm_field(second, 8, 4) != CODE_ARM_PC)
        return true;
    *operation = compares[code];
    return first >> 4 & 1 && *operation;
}

static void data_register(const struct code_arm *a, uint32_t first, uint32_t second)
{
    unsigned operation, shift = code_arm_field(second, 12, 3) << 2 | code_arm_field(second, 6, 2);
    bool is_odd = second >> 4 & 3;
    if (!data_operation(first, second, &operation))
        code_arm_unknown(a);
    else
        code_arm_data_register(a, operation, first >> 4 & 1, code_arm_field(second, 8, 4), first & 15, second & 15,
                               is_odd ? 0 : shift, is_odd);
}

// A byte, repeated, or shifted.
static uint32_t modified(uint32_t code)
{
    uint32_t byte = code & 0xff;
    switch (code >> 8) {
    case 0: return byte;
    case 1: return byte << 16 | byte;
    case 2: return byte << 24 | byte << 8;
    case 3: return byte * 0x01010101u;
    default: {
        uint32_t value = 0x80 | (code & 0x7f), by = code >> 7;
        return value >> by | value << (32 - by);
    }
    }
}

static void data_number(const struct code_arm *a, uint32_t first, uint32_t second)
{
    uint32_t code = (first >> 10 & 1) << 11 | code_arm_field(second, 12, 3) << 8 | (second & 0xff);
    unsigned to = code_arm_field(second, 8, 4), from = first & 15, operation;
    if (!(first >> 9 & 1)) {
        if (!data_operation(first, second, &operation))
            code_arm_unknown(a);
        else
            code_arm_data_number(a, operation, first >> 4 & 1, to, from, modified(code));
        return;
    }
    if (to == CODE_ARM_PC) {
        code_arm_unknown(a);
        return;
    }
    switch (code_arm_field(first, 4, 5)) {
    case 0x00: code_arm_data_number(a, CODE_ARM_ADD, false, to, from, code); break;
    case 0x0a: code_arm_data_number(a, CODE_ARM_SUB, false, to, from, code); break;
    case 0x04: code_set(a->in, to, CODE_REG_NONE, from << 12 | code); break; // movw
    case 0x0c: {                                                             // movt
        struct code_op *op = code_add(a->in, CODE_OP_INSERT, to, to);
        op->number = from << 12 | code;
        op->shift = 16;
        op->size_bytes = 2;
        break;
    }
    default: code_lose(a->in, to); break;
    }
}

static void control(const struct code_arm *a, uint32_t first, uint32_t second)
{
    unsigned operation = code_arm_field(first, 4, 7); // above 0x38, so that it is no condition
    switch (operation) {
    case 0x38:
    case 0x39: code_arm_lose_flags(a); break; // msr
    case 0x3a: a->in->is_padding = second == 0x8000; break;
    case 0x3b: break;                               // barriers
    case 0x3c: code_arm_jump(a, first & 15); break; // bxj
    case 0x3d: code_arm_stop(a); break;             // returns from exceptions
    case 0x3e:
    case 0x3f: code_arm_lose(a, code_arm_field(second, 8, 4)); break; // mrs
    case 0x7e:
    case 0x7f:
        if (second >> 13 & 1) // udf
            code_arm_stop(a);
        else
            code_arm_system_call(a);
        break;
    default: code_arm_unknown(a); break;
    }
}

static void branches(const struct code_arm *a, uint32_t first, uint32_t second)
{
    uint32_t sign = first >> 10 & 1, j1 = second >> 13 & 1, j2 = second >> 11 & 1, low = second & 0x7ff;
    uint32_t high = sign << 23 | (j1 ^ sign ^ 1) << 22 | (j2 ^ sign ^ 1) << 21 | (first & 0x3ff) << 11;
    uint32_t target = a->pc + (uint32_t)(code_arm_signed(high | low, 24) * 2);
    if ((second & 0xd000) == 0xd000) {
        code_arm_go(a, CODE_CALL, target, 1);
    } else if ((second & 0xd001) == 0xc000) {
        code_arm_go(a, CODE_CALL, (a->pc & ~3u) + (target - a->pc), 0);
    } else if ((second & 0xd000) == 0x9000) {
        code_arm_go(a, CODE_JUMP, target, 1);
    } else if ((second & 0xd000) == 0x8000 && code_arm_field(first, 7, 3) != 7) {
        high = sign << 19 | j2 << 18 | j1 << 17 | (first & 0x3f) << 11;
        code_arm_go(a, CODE_BRANCH, a->pc + (uint32_t)(code_arm_signed(high | low, 20) * 2), 1);
        a->in->when = (uint8_t)code_arm_when(code_arm_field(first, 6, 4));
    } else if ((second & 0xd000) == 0x8000) {
        control(a, first, second);
    } else {
        code_arm_unknown(a);
    }
}

static void transfer(const struct code_arm *a, uint32_t first, uint32_t second)
{
    unsigned size = code_arm_field(first, 5, 2), reg = second >> 12, base = first & 15;
    bool has_12_bits = first >> 7 & 1, loads = first >> 4 & 1, is_literal = base == CODE_ARM_PC;
    struct code_arm_transfer t = {.reg = reg,
                                  .base = base,
                                  .index = CODE_REG_NONE,
                                  .loads = loads,
                                  .is_signed = first >> 8 & 1,
                                  .before = true,
                                  .bytes = 1u << size};
    if (size == 3) {
        code_arm_unknown(a);
        return;
    }
    if (has_12_bits || is_literal) {
        t.offset = (int32_t)(second & 0xfff);
        if (!has_12_bits)
            t.offset = -t.offset;
    } else if (second >> 11 & 1) {
        t.offset = (int32_t)(second & 0xff);
        if (!(second >> 9 & 1))
            t.offset = -t.offset;
        t.before = second >> 10 & 1;
        t.writes_back = second >> 8 & 1 && code_arm_field(second, 8, 3) != 6; // 6: unprivileged
        if (code_arm_field(second, 8, 3) == 6)
            t.offset = (int32_t)(second & 0xff);
    } else if (code_arm_field(second, 6, 5) == 0) {
        t.index = second & 15;
        t.shift = code_arm_field(second, 4, 2);
    } else {
        code_arm_unknown(a);
        return;
    }
    if (loads && reg == CODE_ARM_PC && size < 2 && !t.writes_back) // prefetches
        return;
    if (reg == CODE_ARM_PC && size < 2)
        code_arm_unknown(a);
    else
        code_arm_transfer(a, &t);
}

static void multiply(const struct code_arm *a, uint32_t first, uint32_t second)
{
    if ((first & 0xff80) == 0xfb80)
        code_arm_lose(a, second >> 12);
    code_arm_lose(a, code_arm_field(second, 8, 4));
}

void code_arm_read_t32(struct code_arm *a)
{
    uint32_t first = a->word >> 16, second = a->word & 0xffff;
    switch (first >> 9) {
    case 0x74: // e8, e9
        if (first & 0x40)
            transfer_two(a, first, second);
        else
            transfer_many(a, first);
        break;
    case 0x75: data_register(a, first, second); break; // ea, eb
    case 0x76:                                         // ec, ed
    case 0x7e: code_arm_coprocessor(a); break;
    case 0x77: // ee, ef
    case 0x7f:
        if (!(first >> 8 & 1)) // else vectors
            code_arm_coprocessor(a);
        break;
    case 0x7c: // f8, f9
        if ((first & 0xff10) == 0xf900)
            code_arm_structures(a);
        else
            transfer(a, first, second);
        break;
    case 0x7d: multiply(a, first, second); break; // fa, fb: of registers
    default:                                      // f0 ... f7
        if (second >> 15)
            branches(a, first, second);
        else
            data_number(a, first, second);
        break;
    }
}
