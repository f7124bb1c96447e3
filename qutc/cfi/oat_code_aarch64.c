// SPDX-License-Identifier: Apache-2.0
// A64, Arm ARM C4.1. Register 31 is sp as a base, and as the destination of add and sub immediate, add and sub extended
// and the logical immediates that set no flags.
#include "qutc/cfi/oat_code.h"

enum { SP = 31, LR = 30 };

static void read_pair(uint32_t word, struct art_instruction *in)
{
    unsigned mode = word >> 23 & 3; // 0 non-temporal, 1 post-index, 2 offset, 3 pre-index
    unsigned width = word >> 30;
    bool is_vector = word >> 26 & 1, is_load = word >> 22 & 1;
    int32_t scale = is_vector ? 4 << width : width == 2 ? 8 : 4;
    int32_t offset = cfi_oat_signed(word >> 15, 7) * scale;
    unsigned first = word & 31, second = word >> 10 & 31;
    if ((word >> 5 & 31) == SP) {
        if (mode == 1 || mode == 3)
            in->sp_change_bytes = offset;
        if (!is_vector && width == 2) {
            in->loads = is_load;
            art_add_access(in, first, mode == 1 ? 0 : offset);
            art_add_access(in, second, mode == 1 ? 8 : offset + 8);
        }
    }
    if (is_load && !is_vector && (first == LR || second == LR))
        in->effect = ART_RA_LOST;
}

static void read_single(uint32_t word, struct art_instruction *in)
{
    unsigned size = word >> 30, operation = word >> 22 & 3, reg = word & 31;
    bool is_vector = word >> 26 & 1, is_scaled = word >> 24 & 1;
    bool by_register = !is_scaled && (word >> 21 & 1);
    if ((word >> 5 & 31) == SP && !by_register) {
        unsigned mode = is_scaled ? 0 : word >> 10 & 3; // 1 post-index, 3 pre-index
        int32_t offset = is_scaled ? (int32_t)(word >> 10 & 0xfff) * 8 : cfi_oat_signed(word >> 12, 9);
        if (mode == 1 || mode == 3)
            in->sp_change_bytes = offset;
        if (!is_vector && size == 3 && operation <= 1) {
            in->loads = operation == 1;
            art_add_access(in, reg, mode == 1 ? 0 : offset);
        }
    }
    if (operation != 0 && !is_vector && reg == LR)
        in->effect = ART_RA_LOST;
}

static void read_load_store(uint32_t word, struct art_instruction *in)
{
    if ((word & 0x3a000000) == 0x28000000)
        read_pair(word, in);
    else if ((word & 0x3a000000) == 0x38000000)
        read_single(word, in);
    else if ((word & 0xbe800000) == 0x0c800000 && (word >> 5 & 31) == SP) // vectors, post-index
        in->effect = ART_SP_LOST;
    else if ((word & 31) == LR) // literals, exclusives
        in->effect = ART_RA_LOST;
}

static void read_data(uint32_t word, struct art_instruction *in)
{
    unsigned to = word & 31, from = word >> 5 & 31;
    bool add_immediate = (word & 0x3f800000) == 0x11000000, add_extended = (word & 0x3fe00000) == 0x0b200000;
    bool logical_immediate = (word & 0x1f800000) == 0x12000000 && (word >> 29 & 3) != 3;
    if (to == LR)
        in->effect = ART_RA_LOST;
    if (to != SP || !(add_immediate || add_extended || logical_immediate))
        return;
    if (!add_immediate || from != SP || !(word >> 31)) {
        in->effect = ART_SP_LOST;
        return;
    }
    int32_t bytes = (int32_t)(word >> 10 & 0xfff) << (word >> 22 & 1 ? 12 : 0);
    in->sp_change_bytes = word >> 30 & 1 ? -bytes : bytes;
}

static void read_branch(uint32_t word, struct art_instruction *in)
{
    if (word >> 26 == 0x25 || (word & 0xfffffc1f) == 0xd63f0000) // bl, blr
        in->effect = ART_CALL;
    else if (word == 0xd65f03c0) // ret
        in->effect = ART_RETURN;
    else if (word >> 26 == 0x05 || word >> 25 == 0x6b || word >> 21 == 0x6a1) // b; br, other returns; brk
        in->effect = ART_LEAVES;
    if (word >> 26 == 0x05) // b
        art_set_branch(in, cfi_oat_signed(word, 26) * 4);
    else if (word >> 25 == 0x2a || (word & 0x7e000000) == 0x34000000) // b.cond, cbz, cbnz
        art_set_branch(in, cfi_oat_signed(word >> 5, 19) * 4);
    else if ((word & 0x7e000000) == 0x36000000) // tbz, tbnz
        art_set_branch(in, cfi_oat_signed(word >> 5, 14) * 4);
}

void cfi_oat_read_aarch64(struct base_bytes code, struct art_instruction *in)
{
    struct base_cursor c = base_cursor(code);
    uint32_t word = base_read_u32(&c);
    if (c.failed)
        return;
    in->size_bytes = 4;
    switch (word >> 25 & 15) {
    case 4:
    case 6:
    case 12:
    case 14: read_load_store(word, in); break;
    case 5:
    case 13: // of registers
    case 8:
    case 9: read_data(word, in); break;
    case 10:
    case 11: read_branch(word, in); break;
    default: break; // vectors; what is not allocated
    }
}
