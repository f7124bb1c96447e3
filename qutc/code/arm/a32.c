// SPDX-License-Identifier: Apache-2.0
// A32, by the groups of bits 27 to 25.
#include "qutc/code/arm/inside.h"

static void data_register(const struct code_arm *a)
{
    uint32_t word = a->word;
    unsigned shift = code_arm_field(word, 7, 5), kind = code_arm_field(word, 5, 2);
    bool by_register = word >> 4 & 1, is_odd = by_register || (kind != 0);
    code_arm_data_register(a, code_arm_field(word, 21, 4), word >> 20 & 1, code_arm_field(word, 12, 4),
                           code_arm_field(word, 16, 4), code_arm_field(word, 0, 4), is_odd ? 0 : shift, is_odd);
}

static void data_number(const struct code_arm *a)
{
    uint32_t word = a->word, number = word & 0xff;
    unsigned rotate = code_arm_field(word, 8, 4) * 2;
    if (rotate)
        number = number >> rotate | number << (32 - rotate);
    code_arm_data_number(a, code_arm_field(word, 21, 4), word >> 20 & 1, code_arm_field(word, 12, 4),
                         code_arm_field(word, 16, 4), number);
}

static void multiply(const struct code_arm *a)
{
    unsigned operation = code_arm_field(a->word, 21, 3);
    if (a->word >> 20 & 1)
        code_arm_lose_flags(a);
    code_arm_lose(a, code_arm_field(a->word, 16, 4));
    if (operation >= 4 || operation == 2) // of two words
        code_arm_lose(a, code_arm_field(a->word, 12, 4));
}

// swp; exclusive, ordered
static void synchronize(const struct code_arm *a)
{
    uint32_t word = a->word;
    unsigned reg = code_arm_field(word, 12, 4), size = code_arm_field(word, 21, 2);
    bool is_swap = !(word >> 23 & 1), loads = word >> 20 & 1, is_plain_store = code_arm_field(word, 8, 2) == 0;
    if (is_swap || !loads)
        code_store(a->in, code_arm_field(word, 16, 4), 0, CODE_REG_NONE, size == 1 ? 8 : 4);
    if (is_swap || loads || !is_plain_store)
        code_arm_lose(a, reg);
    if (!is_swap && loads && size == 1) // ldrexd
        code_arm_lose(a, reg | 1);
}

// Half words, signed bytes, pairs.
static void transfer_extra(const struct code_arm *a)
{
    uint32_t word = a->word;
    unsigned kind = code_arm_field(word, 5, 2), reg = code_arm_field(word, 12, 4);
    bool by_number = word >> 22 & 1, up = word >> 23 & 1, before = word >> 24 & 1, loads = word >> 20 & 1;
    int32_t number = (int32_t)(code_arm_field(word, 8, 4) << 4 | (word & 15));
    struct code_arm_transfer t = {.reg = reg,
                                  .base = code_arm_field(word, 16, 4),
                                  .index = by_number ? CODE_REG_NONE : word & 15,
                                  .offset = by_number ? (up ? number : -number) : 0,
                                  .subtracts = !up,
                                  .loads = loads,
                                  .is_signed = kind >= 2,
                                  .before = before,
                                  .writes_back = !before || (word >> 21 & 1),
                                  .bytes = kind == 2 ? 1 : 2};
    if (!loads && kind >= 2) {
        t.bytes = 4;
        t.is_signed = false;
        t.loads = kind == 2;
        code_arm_transfer_two(a, &t, reg + 1 > 15 ? CODE_ARM_PC : reg + 1);
    } else {
        code_arm_transfer(a, &t);
    }
}

static void miscellaneous(const struct code_arm *a)
{
    uint32_t word = a->word;
    unsigned operation = code_arm_field(word, 21, 2), kind = code_arm_field(word, 4, 4);
    bool is_branch = code_arm_field(word, 8, 12) == 0xfff;
    if (kind & 8) { // multiplications of half words
        code_arm_lose(a, code_arm_field(word, 16, 4));
        if (operation == 2)
            code_arm_lose(a, code_arm_field(word, 12, 4));
        return;
    }
    switch (kind) {
    case 0: // mrs, msr
        if (operation & 1)
            code_arm_lose_flags(a);
        else
            code_arm_lose(a, code_arm_field(word, 12, 4));
        break;
    case 1:
        if (operation == 1 && is_branch)
            code_arm_jump(a, word & 15);
        else if (operation == 3) // clz
            code_arm_lose(a, code_arm_field(word, 12, 4));
        else
            code_arm_unknown(a);
        break;
    case 2: // bxj
        if (operation == 1 && is_branch)
            code_arm_jump(a, word & 15);
        else
            code_arm_unknown(a);
        break;
    case 3:
        a->in->flow = CODE_CALL;
        a->in->through = (uint8_t)(word & 15);
        if (operation != 1 || !is_branch || (word & 15) == CODE_ARM_PC)
            code_arm_unknown(a);
        break;
    case 7:
        if (operation & 2) // hvc, smc
            code_arm_system_call(a);
        else // hlt, bkpt
            code_arm_stop(a);
        break;
    case 6: code_arm_stop(a); break;                               // eret
    default: code_arm_lose(a, code_arm_field(word, 12, 4)); break; // crc32, qadd
    }
}

static void group_0(const struct code_arm *a)
{
    uint32_t word = a->word;
    if ((word & 0x90) == 0x90) {
        if (word & 0x60)
            transfer_extra(a);
        else if (word >> 24 & 1)
            synchronize(a);
        else
            multiply(a);
    } else if ((word & 0x01900000) == 0x01000000) {
        miscellaneous(a);
    } else {
        data_register(a);
    }
}

static void group_1(const struct code_arm *a)
{
    uint32_t word = a->word;
    unsigned to = code_arm_field(word, 12, 4);
    if ((word & 0x01900000) != 0x01000000) {
        data_number(a);
    } else if (word >> 21 & 1) { // msr; hints
        code_arm_lose_flags(a);
        a->in->is_padding = (word & 0x0fffffff) == 0x0320f000;
    } else if (to == CODE_ARM_PC) {
        code_arm_unknown(a);
    } else { // movw, movt
        uint32_t number = code_arm_field(word, 16, 4) << 12 | code_arm_field(word, 0, 12);
        bool is_top = word >> 22 & 1;
        struct code_op *op = code_add(a->in, is_top ? CODE_OP_INSERT : CODE_OP_SET, to, is_top ? to : CODE_REG_NONE);
        op->number = number;
        op->shift = is_top ? 16 : 0;
        op->size_bytes = is_top ? 2 : 0;
    }
}

static void transfer(const struct code_arm *a)
{
    uint32_t word = a->word;
    bool by_number = !(word >> 25 & 1), up = word >> 23 & 1, before = word >> 24 & 1, is_byte = word >> 22 & 1;
    int32_t number = (int32_t)code_arm_field(word, 0, 12);
    struct code_arm_transfer t = {.reg = code_arm_field(word, 12, 4),
                                  .base = code_arm_field(word, 16, 4),
                                  .index = by_number ? CODE_REG_NONE : word & 15,
                                  .shift = by_number ? 0 : code_arm_field(word, 7, 5),
                                  .is_odd = !by_number && code_arm_field(word, 5, 2) != 0,
                                  .offset = by_number ? (up ? number : -number) : 0,
                                  .subtracts = !up,
                                  .loads = word >> 20 & 1,
                                  .before = before,
                                  .writes_back = !before || (word >> 21 & 1),
                                  .bytes = is_byte ? 1 : 4};
    if (is_byte && t.loads && t.reg == CODE_ARM_PC)
        code_arm_unknown(a);
    else
        code_arm_transfer(a, &t);
}

static void media(const struct code_arm *a)
{
    uint32_t word = a->word;
    unsigned operation = code_arm_field(word, 20, 5);
    if (operation == 0x1f && code_arm_field(word, 5, 3) == 7) { // udf
        code_arm_stop(a);
    } else if (operation >> 3 == 2 || operation == 0x18) { // multiplications, divisions, usad8
        code_arm_lose(a, code_arm_field(word, 16, 4));
        if (operation == 0x14)
            code_arm_lose(a, code_arm_field(word, 12, 4));
    } else {
        code_arm_lose(a, code_arm_field(word, 12, 4));
    }
}

static void unconditional(const struct code_arm *a)
{
    uint32_t word = a->word;
    if ((word & 0xfe000000) == 0xfa000000) // blx
        code_arm_go(a, CODE_CALL, a->pc + (uint32_t)(code_arm_signed(word, 24) * 4) + (word >> 23 & 2), 1);
    else if ((word & 0xff100000) == 0xf4000000)
        code_arm_structures(a);
    else if ((word & 0xfe000000) == 0xf8000000) // rfe, srs
        code_arm_unknown(a);
    else if (word >> 24 >= 0xfc && word >> 24 < 0xff)
        code_arm_coprocessor(a);
    else if (word >> 24 == 0xff || (word & 0xfff000f0) == 0xf7f000f0)
        code_arm_stop(a);
    // What is left has no core registers: vectors, prefetches, barriers, modes.
}

void code_arm_read_a32(struct code_arm *a)
{
    uint32_t word = a->word;
    unsigned condition = word >> 28;
    if (condition == 15) {
        unconditional(a);
        return;
    }
    a->in->conditional = condition != 14;
    switch (code_arm_field(word, 25, 3)) {
    case 0: group_0(a); break;
    case 1: group_1(a); break;
    case 2: transfer(a); break;
    case 3:
        if (word >> 4 & 1)
            media(a);
        else
            transfer(a);
        break;
    case 4:
        if (word >> 22 & 1) // of another mode
            code_arm_unknown(a);
        else
            code_arm_transfer_many(a, code_arm_field(word, 16, 4), word & 0xffff, word >> 20 & 1, word >> 23 & 1,
                                   word >> 24 & 1, word >> 21 & 1);
        break;
    case 5: {
        uint32_t target = a->pc + (uint32_t)(code_arm_signed(word, 24) * 4);
        bool is_call = word >> 24 & 1;
        code_arm_go(a, is_call ? CODE_CALL : condition == 14 ? CODE_JUMP : CODE_BRANCH, target, 0);
        if (!is_call) {
            a->in->conditional = false;
            a->in->when = (uint8_t)code_arm_when(condition);
        }
        break;
    }
    default:
        if ((word & 0x0f000000) == 0x0f000000)
            code_arm_system_call(a);
        else
            code_arm_coprocessor(a);
        break;
    }
}
