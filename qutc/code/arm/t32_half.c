// SPDX-License-Identifier: Apache-2.0
// T32, instructions of two bytes. Whether those of data processing set flags depends on `it`; they pass for doing so.
#include "qutc/code/arm/inside.h"

static void shifts_and_sums(const struct code_arm *a)
{
    uint32_t word = a->word;
    unsigned operation = code_arm_field(word, 11, 2), to = word & 7, from = code_arm_field(word, 3, 3);
    if (operation < 3) { // lsls, lsrs, asrs
        code_arm_data_register(a, CODE_ARM_MOV, true, to, 0, from, operation ? 0 : code_arm_field(word, 6, 5),
                               operation != 0);
        return;
    }
    unsigned other = code_arm_field(word, 6, 3), kind = word >> 9 & 1 ? CODE_ARM_SUB : CODE_ARM_ADD;
    if (word >> 10 & 1)
        code_arm_data_number(a, kind, true, to, from, other);
    else
        code_arm_data_register(a, kind, true, to, from, other, 0, false);
}

static void of_number(const struct code_arm *a)
{
    static const uint8_t kinds[4] = {CODE_ARM_MOV, CODE_ARM_CMP, CODE_ARM_ADD, CODE_ARM_SUB};
    unsigned reg = code_arm_field(a->word, 8, 3);
    code_arm_data_number(a, kinds[code_arm_field(a->word, 11, 2)], true, reg, reg, a->word & 0xff);
}

static void of_registers(const struct code_arm *a)
{
    unsigned operation = code_arm_field(a->word, 6, 4), to = a->word & 7, from = code_arm_field(a->word, 3, 3);
    if (operation == 10)
        code_arm_data_register(a, CODE_ARM_CMP, true, to, to, from, 0, false);
    else
        code_arm_data_register(a, operation == 8 || operation == 11 ? CODE_ARM_TST : CODE_ARM_ELSE, true, to, to, from,
                               0, true);
}

static void of_high_registers(const struct code_arm *a)
{
    uint32_t word = a->word;
    unsigned to = (word & 7) | (word >> 4 & 8), from = code_arm_field(word, 3, 4);
    switch (code_arm_field(word, 8, 2)) {
    case 0: code_arm_data_register(a, CODE_ARM_ADD, false, to, to, from, 0, false); break;
    case 1: code_arm_data_register(a, CODE_ARM_CMP, true, to, to, from, 0, false); break;
    case 2: code_arm_data_register(a, CODE_ARM_MOV, false, to, 0, from, 0, false); break;
    default:
        if (!(word >> 7 & 1)) {
            code_arm_jump(a, from);
        } else if (from == CODE_ARM_PC) {
            code_arm_unknown(a);
        } else {
            a->in->flow = CODE_CALL;
            a->in->through = (uint8_t)from;
        }
        break;
    }
}

static void transfer(const struct code_arm *a, unsigned bytes, bool loads, bool is_signed, unsigned base,
                     unsigned index, int32_t offset)
{
    struct code_arm_transfer t = {.reg = a->word & 7,
                                  .base = base,
                                  .index = index,
                                  .offset = offset,
                                  .loads = loads,
                                  .is_signed = is_signed,
                                  .before = true,
                                  .bytes = bytes};
    if (base == CODE_ARM_SP || base == CODE_ARM_PC)
        t.reg = code_arm_field(a->word, 8, 3);
    code_arm_transfer(a, &t);
}

static void transfer_by_register(const struct code_arm *a)
{
    static const struct {
        uint8_t bytes;
        bool loads, is_signed;
    } kinds[8] = {{4, false, false}, {2, false, false}, {1, false, false}, {1, true, true},
                  {4, true, false},  {2, true, false},  {1, true, false},  {2, true, true}};
    unsigned kind = code_arm_field(a->word, 9, 3);
    transfer(a, kinds[kind].bytes, kinds[kind].loads, kinds[kind].is_signed, code_arm_field(a->word, 3, 3),
             code_arm_field(a->word, 6, 3), 0);
}

static void miscellaneous(const struct code_arm *a)
{
    uint32_t word = a->word;
    struct code_instruction *in = a->in;
    switch (code_arm_field(word, 8, 4)) {
    case 0: {
        int32_t bytes = (int32_t)(word & 0x7f) * 4;
        code_set(in, CODE_ARM_SP, CODE_ARM_SP, word & 0x80 ? -bytes : bytes);
        break;
    }
    case 1: // cbz, cbnz
    case 3:
    case 9:
    case 11: code_arm_go(a, CODE_BRANCH, a->pc + (code_arm_field(word, 3, 5) << 1 | (word >> 3 & 0x40)), 1); break;
    case 4:
    case 5:
        code_arm_transfer_many(a, CODE_ARM_SP, (word & 0xff) | (word & 0x100) << 6, false, false, true, true);
        break;
    case 12:
    case 13:
        code_arm_transfer_many(a, CODE_ARM_SP, (word & 0xff) | (word & 0x100) << 7, true, true, false, true);
        break;
    case 2: code_arm_lose(a, word & 7); break; // sxth and others
    case 10:                                   // rev and others; hlt
        if ((word & 0xc0) == 0x80)
            code_arm_stop(a);
        else
            code_arm_lose(a, word & 7);
        break;
    case 14: code_arm_stop(a); break; // bkpt
    case 15:                          // it; hints
        if (word & 15)
            in->conditional_next = (uint8_t)(4 - __builtin_ctz(word & 15));
        in->is_padding = word == 0xbf00;
        break;
    case 6: break; // cps, setend
    default: code_arm_unknown(a); break;
    }
}

void code_arm_read_half(struct code_arm *a)
{
    uint32_t word = a->word;
    unsigned low = code_arm_field(word, 3, 3);
    int32_t offset = (int32_t)code_arm_field(word, 6, 5);
    bool loads = word >> 11 & 1;
    switch (word >> 12) {
    case 0:
    case 1: shifts_and_sums(a); break;
    case 2:
    case 3: of_number(a); break;
    case 4:
        if (loads)
            transfer(a, 4, true, false, CODE_ARM_PC, CODE_REG_NONE, (int32_t)(word & 0xff) * 4);
        else if (word >> 10 & 1)
            of_high_registers(a);
        else
            of_registers(a);
        break;
    case 5: transfer_by_register(a); break;
    case 6: transfer(a, 4, loads, false, low, CODE_REG_NONE, offset * 4); break;
    case 7: transfer(a, 1, loads, false, low, CODE_REG_NONE, offset); break;
    case 8: transfer(a, 2, loads, false, low, CODE_REG_NONE, offset * 2); break;
    case 9: transfer(a, 4, loads, false, CODE_ARM_SP, CODE_REG_NONE, (int32_t)(word & 0xff) * 4); break;
    case 10: // adr; add of sp
        code_arm_data_number(a, CODE_ARM_ADD, false, code_arm_field(word, 8, 3), loads ? CODE_ARM_SP : CODE_ARM_PC,
                             (word & 0xff) * 4);
        break;
    case 11: miscellaneous(a); break;
    case 12: {
        unsigned base = code_arm_field(word, 8, 3);
        code_arm_transfer_many(a, base, word & 0xff, loads, true, false, !loads || !(word >> base & 1));
        break;
    }
    case 13: {
        unsigned condition = code_arm_field(word, 8, 4);
        if (condition == 14) {
            code_arm_stop(a);
        } else if (condition == 15) {
            code_arm_system_call(a);
        } else {
            code_arm_go(a, CODE_BRANCH, a->pc + (uint32_t)(code_arm_signed(word, 8) * 2), 1);
            a->in->when = (uint8_t)code_arm_when(condition);
        }
        break;
    }
    default: code_arm_go(a, CODE_JUMP, a->pc + (uint32_t)(code_arm_signed(word, 11) * 2), 1); break;
    }
}
