// SPDX-License-Identifier: Apache-2.0
#include "qutc/code/aarch64/inside.h"

static const uint8_t when_of[16] = {
    CODE_WHEN_EQUAL, CODE_WHEN_UNEQUAL, CODE_WHEN_AT_LEAST, CODE_WHEN_BELOW, 0, 0, 0, 0,
    CODE_WHEN_ABOVE, CODE_WHEN_AT_MOST,
};

static void hint(struct code_instruction *in, unsigned number)
{
    switch (number) {
    case 0: in->is_padding = true; break;
    case 8: // pacia1716, pacib1716, autia1716, autib1716
    case 10:
    case 12:
    case 14: code_lose(in, 17); break;
    case 24: // paciaz, paciasp, pacibz, pacibsp
    case 25:
    case 26:
    case 27: code_add(in, CODE_OP_SIGN, CODE_A64_LR, CODE_REG_NONE)->number = number >= 26; break;
    case 7: // xpaclri: the signature is taken away, checked or not
    case 28:
    case 29:
    case 30:
    case 31: code_add(in, CODE_OP_AUTH, CODE_A64_LR, CODE_REG_NONE); break;
    case 40: code_lose(in, 16); break; // chkfeat
    default: break;
    }
    in->is_landing = number == 25 || number == 27 || number == 34 || number == 38; // paciasp, pacibsp, bti c, bti jc
}

static void system_registers(struct code_instruction *in, uint32_t word)
{
    if ((word & 0xfffff01f) == 0xd503201f)
        hint(in, code_a64_field(word, 5, 7));
    if (word >> 21 & 1) { // mrs, sysl
        code_a64_lose(in, code_a64_field(word, 0, 5));
        if (word >> 22 & 1) // mrrs
            code_a64_lose(in, code_a64_field(word, 0, 5) | 1);
    } else {
        code_a64_lose_flags(in);
    }
}

static void exceptions(struct code_instruction *in, uint32_t word)
{
    if ((word & 0xffe00000) != 0xd4000000) { // brk, hlt
        in->flow = CODE_STOP;
        return;
    }
    in->flow = CODE_SYSTEM;
    unsigned count = (word & 3) == 1 ? 1 : 18; // svc; hvc and smc, by their calling convention
    for (unsigned reg = 0; reg < count; reg++)
        code_lose(in, reg);
}

static void by_register(struct code_instruction *in, uint32_t word)
{
    static const uint8_t flows[16] = {
        [0] = CODE_JUMP, [1] = CODE_CALL, [2] = CODE_RETURN, [8] = CODE_JUMP, [9] = CODE_CALL};
    unsigned operation = code_a64_field(word, 21, 4), reg = code_a64_field(word, 5, 5);
    bool checks = word >> 11 & 1; // retaa, braa, blraa
    in->flow = flows[operation];
    if (in->flow == CODE_NEXT) { // eret, drps
        in->flow = CODE_STOP;
        return;
    }
    if (in->flow == CODE_RETURN && checks) { // also retaasppcr
        code_add(in, CODE_OP_AUTH, CODE_A64_LR, CODE_REG_NONE);
        reg = CODE_A64_LR;
    }
    in->through = (uint8_t)reg;
    if (reg == CODE_A64_ZR)
        in->flow = CODE_STOP;
}

static void branches(struct code_instruction *in, uint32_t word, uint64_t vaddr)
{
    int64_t words;
    if ((word & 0xfe000000) == 0xd6000000) {
        by_register(in, word);
        return;
    }
    if ((word & 0xff000000) == 0xd4000000) {
        exceptions(in, word);
        return;
    }
    if ((word & 0xff000000) == 0xd5000000) {
        system_registers(in, word);
        return;
    }
    if ((word & 0x7c000000) == 0x14000000) { // b, bl
        in->flow = word >> 31 ? CODE_CALL : CODE_JUMP;
        words = code_a64_signed(word, 0, 26);
    } else if ((word & 0xff000000) == 0x54000000) { // b.cond, bc.cond
        bool is_always = code_a64_field(word, 1, 3) == 7;
        in->flow = is_always ? CODE_JUMP : CODE_BRANCH;
        in->when = when_of[word & 15];
        words = code_a64_signed(word, 5, 19);
    } else if ((word & 0x7e000000) == 0x34000000) { // cbz, cbnz
        in->flow = CODE_BRANCH;
        words = code_a64_signed(word, 5, 19);
    } else if ((word & 0x7e000000) == 0x36000000) { // tbz, tbnz
        in->flow = CODE_BRANCH;
        words = code_a64_signed(word, 5, 14);
    } else if ((word & 0x7e000000) == 0x74000000) { // cbgt and others
        in->flow = CODE_BRANCH;
        words = code_a64_signed(word, 5, 9);
    } else if ((word & 0xffc0001f) == 0x5500001f) { // retaasppc, retabsppc
        code_add(in, CODE_OP_AUTH, CODE_A64_LR, CODE_REG_NONE);
        in->flow = CODE_RETURN;
        in->through = CODE_A64_LR;
        return;
    } else {
        in->size_bytes = 0;
        return;
    }
    in->target = vaddr + (uint64_t)words * 4;
}

void code_read_aarch64(struct base_bytes code, uint64_t vaddr, unsigned mode, struct code_instruction *in)
{
    (void)mode;
    struct base_cursor c = base_cursor(code);
    uint32_t word = base_read_u32(&c);
    code_begin(in);
    if (c.failed)
        return;
    in->size_bytes = 4;
    switch (code_a64_field(word, 25, 4)) {
    case 4:
    case 6:
    case 12:
    case 14: code_a64_memory(in, word, vaddr); break;
    case 5:
    case 13: code_a64_registers(in, word); break;
    case 8:
    case 9: code_a64_immediate(in, word, vaddr); break;
    case 10:
    case 11: branches(in, word, vaddr); break;
    case 7:
    case 15: code_a64_vectors(in, word); break;
    case 2: code_a64_scalable(in, word); break;
    case 0:
        if (word >> 31)
            code_a64_scalable(in, word);
        else if (word >> 16 == 0) // udf
            in->flow = CODE_STOP;
        else
            in->size_bytes = 0;
        break;
    default: in->size_bytes = 0; break;
    }
}
