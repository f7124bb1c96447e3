// SPDX-License-Identifier: Apache-2.0
// RV64GC, the unprivileged specification, chapters "RV32/64G Instruction Set Listings" and "C".
#include "qutc/cfi/oat_code.h"

enum { RA = 1, SP = 2 };

static void writes(struct art_instruction *in, unsigned reg)
{
    if (reg == SP)
        in->effect = ART_SP_LOST;
    else if (reg == RA)
        in->effect = ART_RA_LOST;
}

static void jump(struct art_instruction *in, unsigned link, unsigned through)
{
    if (link == RA)
        in->effect = ART_CALL;
    else if (link != 0)
        in->effect = ART_SP_LOST; // nothing that a compiler of methods writes
    else
        in->effect = through == RA ? ART_RETURN : ART_LEAVES;
}

static void move_word(struct art_instruction *in, bool loads, unsigned reg, int32_t offset_bytes)
{
    in->loads = loads;
    art_add_access(in, reg, offset_bytes);
}

static void read_wide(uint32_t word, struct art_instruction *in)
{
    unsigned to = word >> 7 & 31, from = word >> 15 & 31, function = word >> 12 & 7;
    int32_t immediate = (int32_t)word >> 20;
    switch (word & 0x7f) {
    case 0x13: // addi and others
        if (to == SP && from == SP && function == 0)
            in->sp_change_bytes = immediate;
        else
            writes(in, to);
        break;
    case 0x03: // loads
        writes(in, to);
        if (function == 3 && from == SP)
            move_word(in, true, to, immediate);
        break;
    case 0x23: // stores
        if (function == 3 && from == SP)
            move_word(in, false, word >> 20 & 31, cfi_oat_signed(word >> 25 << 5 | to, 12));
        break;
    case 0x6f: // jal
        jump(in, to, 0);
        if (to == 0)
            art_set_branch(in, cfi_oat_signed((word >> 11 & 0x100000) | (word & 0xff000) | (word >> 9 & 0x800) |
                                                  (word >> 20 & 0x7fe),
                                              21));
        break;
    case 0x67: jump(in, to, from); break; // jalr
    case 0x63:                            // branches
        art_set_branch(
            in, cfi_oat_signed((word >> 19 & 0x1000) | (word << 4 & 0x800) | (word >> 20 & 0x7e0) | (word >> 7 & 0x1e),
                               13));
        break;
    case 0x27:        // stores of floating-point numbers
    case 0x07:        // loads of them
    case 0x0f: break; // fences
    default: writes(in, to); break;
    }
}

static void read_compressed(uint32_t half, struct art_instruction *in)
{
    unsigned to = half >> 7 & 31, from = half >> 2 & 31;
    switch ((half & 3) << 3 | half >> 13) {
    case 010: // c.addi
        if (to == SP)
            in->sp_change_bytes = cfi_oat_signed((half >> 7 & 0x20) | from, 6);
        else
            writes(in, to);
        break;
    case 013: // c.lui, c.addi16sp
        if (to == SP)
            in->sp_change_bytes = cfi_oat_signed((half >> 3 & 0x200) | (half >> 2 & 0x10) | (half << 1 & 0x40) |
                                                     (half << 4 & 0x180) | (half << 3 & 0x20),
                                                 10);
        else
            writes(in, to);
        break;
    case 011:                        // c.addiw
    case 012:                        // c.li
    case 020:                        // c.slli
    case 022: writes(in, to); break; // c.lwsp
    case 015:                        // c.j
        jump(in, 0, 0);
        art_set_branch(in, cfi_oat_signed((half >> 1 & 0x800) | (half << 2 & 0x400) | (half >> 1 & 0x300) |
                                              (half << 1 & 0x80) | (half >> 1 & 0x40) | (half << 3 & 0x20) |
                                              (half >> 7 & 0x10) | (half >> 2 & 0xe),
                                          12));
        break;
    case 016: // c.beqz, c.bnez
    case 017:
        art_set_branch(in, cfi_oat_signed((half >> 4 & 0x100) | (half << 1 & 0xc0) | (half << 3 & 0x20) |
                                              (half >> 7 & 0x18) | (half >> 2 & 6),
                                          9));
        break;
    case 023: // c.ldsp
        writes(in, to);
        move_word(in, true, to, (int32_t)((half >> 7 & 0x20) | (half >> 2 & 0x18) | (half << 4 & 0x1c0)));
        break;
    case 027: move_word(in, false, from, (int32_t)((half >> 7 & 0x38) | (half >> 1 & 0x1c0))); break; // c.sdsp
    case 024: // c.jr, c.mv, c.jalr, c.add, c.ebreak
        if (from)
            writes(in, to);
        else if (to)
            jump(in, half >> 12 & 1, to);
        else
            in->effect = ART_LEAVES;
        break;
    default: break; // the rest has registers 8 ... 15, floating-point ones, or branches
    }
}

void cfi_oat_read_riscv64(struct base_bytes code, struct art_instruction *in)
{
    struct base_cursor c = base_cursor(code);
    uint32_t word = base_read_u16(&c);
    if (c.failed)
        return;
    if ((word & 3) != 3) {
        in->size_bytes = 2;
        read_compressed(word, in);
        return;
    }
    word |= (uint32_t)base_read_u16(&c) << 16;
    if (c.failed)
        return;
    in->size_bytes = 4;
    read_wide(word, in);
}
