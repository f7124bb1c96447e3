// SPDX-License-Identifier: Apache-2.0
// Instructions of two bytes: extensions C and Zcb.
#include "qutc/code/riscv64/inside.h"

struct halves {
    uint32_t half;
    unsigned to, from;     // whole fields
    unsigned upper, lower; // of three bits: registers 8 ... 15
    int64_t immediate;     // of six bits
    int64_t word_offset;   // of what moves 4 bytes, 8 bytes
    int64_t double_offset;
};

static void quadrant_0(struct code_instruction *in, const struct halves *h)
{
    uint32_t half = h->half;
    switch (half >> 13) {
    case 0: { // c.addi4spn
        uint32_t number = code_rv_bits(half, 11, 2, 4) | code_rv_bits(half, 7, 4, 6) | code_rv_bits(half, 6, 1, 2) |
                          code_rv_bits(half, 5, 1, 3);
        if (half == 0)
            in->flow = CODE_STOP;
        else if (number == 0)
            in->size_bytes = 0;
        else
            code_rv_set(in, h->lower, CODE_RV_SP, number);
        break;
    }
    case 1: break; // c.fld
    case 2: code_rv_load(in, h->lower, h->upper, h->word_offset, 4, true); break;
    case 3: code_rv_load(in, h->lower, h->upper, h->double_offset, 8, true); break;
    case 4: { // of bytes and half words
        unsigned operation = code_rv_field(half, 10, 3);
        uint32_t odd = code_rv_bits(half, 5, 1, 1), byte = odd | code_rv_field(half, 6, 1);
        if (operation == 0)
            code_rv_load(in, h->lower, h->upper, byte, 1, false);
        else if (operation == 1)
            code_rv_load(in, h->lower, h->upper, odd, 2, half >> 6 & 1);
        else if (operation == 2)
            code_rv_store(in, h->upper, byte, h->lower, 1);
        else if (operation == 3 && !(half >> 6 & 1))
            code_rv_store(in, h->upper, odd, h->lower, 2);
        else
            in->size_bytes = 0;
        break;
    }
    case 5: code_rv_store(in, h->upper, h->double_offset, CODE_RV_ZERO, 8); break; // c.fsd
    case 6: code_rv_store(in, h->upper, h->word_offset, h->lower, 4); break;
    default: code_rv_store(in, h->upper, h->double_offset, h->lower, 8); break;
    }
}

static void arithmetic(struct code_instruction *in, const struct halves *h)
{
    unsigned operation = code_rv_field(h->half, 10, 2);
    if (operation == 2)
        code_add(in, CODE_OP_AND, h->upper, h->upper)->number = h->immediate;
    else if (operation == 3 && code_rv_field(h->half, 12, 1) == 0 && code_rv_field(h->half, 5, 2) == 0)
        code_rv_sum(in, h->upper, h->upper, h->lower, 0, true); // c.sub
    else if (operation == 3 && code_rv_field(h->half, 12, 1) && h->lower == 8 + 4 && code_rv_field(h->half, 5, 2) == 3)
        code_rv_extend(in, h->upper, h->upper, 4, false); // c.zext.w
    else
        code_rv_lose(in, h->upper);
}

static void quadrant_1(struct code_instruction *in, const struct halves *h, uint64_t vaddr)
{
    uint32_t half = h->half, jump = code_rv_bits(half, 12, 1, 11) | code_rv_bits(half, 11, 1, 4) |
                                    code_rv_bits(half, 9, 2, 8) | code_rv_bits(half, 8, 1, 10) |
                                    code_rv_bits(half, 7, 1, 6) | code_rv_bits(half, 6, 1, 7) |
                                    code_rv_bits(half, 3, 3, 1) | code_rv_bits(half, 2, 1, 5);
    uint32_t branch = code_rv_bits(half, 12, 1, 8) | code_rv_bits(half, 10, 2, 3) | code_rv_bits(half, 5, 2, 6) |
                      code_rv_bits(half, 3, 2, 1) | code_rv_bits(half, 2, 1, 5);
    switch (half >> 13) {
    case 0:
        in->is_padding = half == 1; // c.nop
        code_rv_set(in, h->to, h->to, h->immediate);
        break;
    case 1:
        if (h->to == CODE_RV_ZERO)
            in->size_bytes = 0;
        code_rv_set_word(in, h->to, h->to, h->immediate);
        break;
    case 2: code_rv_set(in, h->to, CODE_RV_ZERO, h->immediate); break;
    case 3:
        if (h->to == CODE_RV_SP) { // c.addi16sp
            uint32_t number = code_rv_bits(half, 12, 1, 9) | code_rv_bits(half, 6, 1, 4) | code_rv_bits(half, 5, 1, 6) |
                              code_rv_bits(half, 3, 2, 7) | code_rv_bits(half, 2, 1, 5);
            code_rv_set(in, CODE_RV_SP, CODE_RV_SP, code_rv_signed(number, 10));
        } else if (h->immediate != 0) { // c.lui; else c.mop, which writes nothing
            code_rv_set(in, h->to, CODE_RV_ZERO, h->immediate * 4096);
        }
        break;
    case 4: arithmetic(in, h); break;
    case 5:
        in->flow = CODE_JUMP;
        in->target = vaddr + (uint64_t)code_rv_signed(jump, 12);
        break;
    default: // c.beqz, c.bnez
        code_rv_compare(in, h->upper, CODE_RV_ZERO);
        in->flow = CODE_BRANCH;
        in->when = half >> 13 == 6 ? CODE_WHEN_EQUAL : CODE_WHEN_UNEQUAL;
        in->target = vaddr + (uint64_t)code_rv_signed(branch, 9);
        break;
    }
}

static void quadrant_2(struct code_instruction *in, const struct halves *h)
{
    uint32_t half = h->half;
    bool has_bit_12 = half >> 12 & 1;
    int64_t load_4 = code_rv_bits(half, 12, 1, 5) | code_rv_bits(half, 4, 3, 2) | code_rv_bits(half, 2, 2, 6);
    int64_t load_8 = code_rv_bits(half, 12, 1, 5) | code_rv_bits(half, 5, 2, 3) | code_rv_bits(half, 2, 3, 6);
    int64_t store_4 = code_rv_bits(half, 9, 4, 2) | code_rv_bits(half, 7, 2, 6);
    int64_t store_8 = code_rv_bits(half, 10, 3, 3) | code_rv_bits(half, 7, 3, 6);
    switch (half >> 13) {
    case 0: // c.slli
        if (h->to != CODE_RV_ZERO)
            code_add(in, CODE_OP_SHIFT, h->to, h->to)->shift = (uint8_t)(h->immediate & 63);
        break;
    case 1: break; // c.fldsp
    case 2: code_rv_load(in, h->to, CODE_RV_SP, load_4, 4, true); break;
    case 3: code_rv_load(in, h->to, CODE_RV_SP, load_8, 8, true); break;
    case 4:
        if (h->from != CODE_RV_ZERO && has_bit_12) // c.add
            code_rv_sum(in, h->to, h->to, h->from, 0, false);
        else if (h->from != CODE_RV_ZERO) // c.mv
            code_rv_set(in, h->to, h->from, 0);
        else if (h->to != CODE_RV_ZERO) // c.jalr, c.jr
            code_rv_jump_register(in, has_bit_12 ? CODE_RV_RA : CODE_RV_ZERO, h->to, 0);
        else if (has_bit_12) // c.ebreak
            in->flow = CODE_STOP;
        else
            in->size_bytes = 0;
        break;
    case 5: code_rv_store(in, CODE_RV_SP, store_8, CODE_RV_ZERO, 8); break; // c.fsdsp
    case 6: code_rv_store(in, CODE_RV_SP, store_4, h->from, 4); break;
    default: code_rv_store(in, CODE_RV_SP, store_8, h->from, 8); break;
    }
}

void code_rv_compressed(struct code_instruction *in, uint32_t half, uint64_t vaddr)
{
    struct halves h = {.half = half,
                       .to = code_rv_field(half, 7, 5),
                       .from = code_rv_field(half, 2, 5),
                       .upper = code_rv_field(half, 7, 3) + 8,
                       .lower = code_rv_field(half, 2, 3) + 8,
                       .immediate = code_rv_signed(code_rv_bits(half, 12, 1, 5) | code_rv_field(half, 2, 5), 6),
                       .word_offset =
                           code_rv_bits(half, 10, 3, 3) | code_rv_bits(half, 6, 1, 2) | code_rv_bits(half, 5, 1, 6),
                       .double_offset = code_rv_bits(half, 10, 3, 3) | code_rv_bits(half, 5, 2, 6)};
    switch (half & 3) {
    case 0: quadrant_0(in, &h); break;
    case 1: quadrant_1(in, &h, vaddr); break;
    default: quadrant_2(in, &h); break;
    }
}
