// SPDX-License-Identifier: Apache-2.0
// T32, Arm ARM (DDI 0406) chapter A6. ART compiles to nothing else on 32-bit Arm.
#include "qutc/cfi/oat_code.h"

enum { SP = 13, LR = 14, PC = 15 };

static void writes(struct art_instruction *in, unsigned reg)
{
    if (reg == SP)
        in->effect = ART_SP_LOST;
    else if (reg == LR && in->effect == ART_PLAIN)
        in->effect = ART_RA_LOST;
    else if (reg == PC)
        in->effect = ART_LEAVES;
}

static void push(struct art_instruction *in, uint32_t list)
{
    int32_t offset = -4 * __builtin_popcount(list);
    in->sp_change_bytes = offset;
    for (unsigned reg = 0; reg < 16; reg++)
        if (list >> reg & 1) {
            art_add_access(in, reg, offset);
            offset += 4;
        }
    if (list >> SP & 1 || list >> PC & 1)
        in->effect = ART_SP_LOST;
}

static void pop(struct art_instruction *in, uint32_t list)
{
    int32_t offset = 0;
    in->loads = true;
    for (unsigned reg = 0; reg < 16; reg++)
        if (list >> reg & 1) { // what is loaded into pc is the return address
            art_add_access(in, reg == PC ? LR : reg, offset);
            offset += 4;
        }
    in->sp_change_bytes = offset;
    if (list >> SP & 1)
        in->effect = ART_SP_LOST;
    else if (list >> PC & 1)
        in->effect = ART_RETURN;
    else if (list >> LR & 1)
        in->effect = ART_RA_LOST;
}

static void read_high_registers(uint32_t half, struct art_instruction *in)
{
    unsigned to = (half & 7) | (half >> 4 & 8), from = half >> 3 & 15;
    switch (half >> 8 & 3) {
    case 0:                        // add
    case 2: writes(in, to); break; // mov
    case 1: break;                 // cmp
    default:
        if (half & 0x80)
            in->effect = ART_CALL;
        else
            in->effect = from == LR ? ART_RETURN : ART_LEAVES;
    }
}

static void read_half(uint32_t half, struct art_instruction *in)
{
    if ((half & 0xfc00) == 0x4400) {
        read_high_registers(half, in);
    } else if ((half & 0xf000) == 0x9000) { // str, ldr with sp
        in->loads = half >> 11 & 1;
        art_add_access(in, half >> 8 & 7, (int32_t)(half & 0xff) * 4);
    } else if ((half & 0xff00) == 0xb000) { // add, sub sp
        int32_t bytes = (int32_t)(half & 0x7f) * 4;
        in->sp_change_bytes = half & 0x80 ? -bytes : bytes;
    } else if ((half & 0xfe00) == 0xb400) {
        push(in, (half & 0xff) | (half & 0x100) << 6);
    } else if ((half & 0xfe00) == 0xbc00) {
        pop(in, (half & 0xff) | (half & 0x100) << 7);
    } else if ((half & 0xff00) == 0xde00 || (half & 0xff00) == 0xbe00) { // udf, bkpt
        in->effect = ART_LEAVES;
    } else if ((half & 0xf800) == 0xe000) { // b
        in->effect = ART_LEAVES;
        art_set_branch(in, 4 + cfi_oat_signed(half, 11) * 2);
    } else if ((half & 0xf000) == 0xd000 && (half & 0xf00) != 0xf00) { // b.cond
        art_set_branch(in, 4 + cfi_oat_signed(half, 8) * 2);
    } else if ((half & 0xf500) == 0xb100) { // cbz, cbnz
        art_set_branch(in, 4 + (int32_t)((half >> 2 & 0x3e) | (half >> 3 & 0x40)));
    }
}

static void read_branch(uint32_t first, uint32_t second, struct art_instruction *in)
{
    uint32_t sign = first >> 10 & 1, j1 = second >> 13 & 1, j2 = second >> 11 & 1, low = second & 0x7ff;
    if ((second & 0xd000) == 0xd000 || (second & 0xd001) == 0xc000) { // bl, blx
        in->effect = ART_CALL;
    } else if ((second & 0xd000) == 0x9000) { // b
        uint32_t high = (sign << 2 | (j1 ^ sign ^ 1) << 1 | (j2 ^ sign ^ 1)) << 10 | (first & 0x3ff);
        in->effect = ART_LEAVES;
        art_set_branch(in, 4 + cfi_oat_signed(high << 11 | low, 24) * 2);
    } else if ((second & 0xd000) == 0x8000 && (first >> 7 & 7) != 7) { // b.cond
        uint32_t high = (sign << 2 | j2 << 1 | j1) << 6 | (first & 0x3f);
        art_set_branch(in, 4 + cfi_oat_signed(high << 11 | low, 20) * 2);
    } else if ((first & 0xffe0) == 0xf3e0) { // mrs
        writes(in, second >> 8 & 15);
    }
}

// A constant of data-processing instructions: a byte, repeated, or shifted.
static uint32_t modified_immediate(uint32_t first, uint32_t second)
{
    uint32_t code = (first >> 10 & 1) << 11 | (second >> 12 & 7) << 8 | (second & 0xff);
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

static void read_data(uint32_t first, uint32_t second, struct art_instruction *in)
{
    unsigned to = second >> 8 & 15;
    if (first >> 12 == 0xf && (second >> 15 & 1)) {
        read_branch(first, second, in);
        return;
    }
    uint32_t plain = (first >> 10 & 1) << 11 | (second >> 12 & 7) << 8 | (second & 0xff);
    if (to == SP) {
        uint32_t bytes;
        switch (first & 0xfbff) {
        case 0xf1ad:
        case 0xf10d: bytes = modified_immediate(first, second); break;
        case 0xf2ad:
        case 0xf20d: bytes = plain; break;
        default: in->effect = ART_SP_LOST; return;
        }
        if (bytes >> 24)
            in->effect = ART_SP_LOST;
        in->sp_change_bytes = first & 0x80 ? -(int32_t)(bytes & 0xffffff) : (int32_t)(bytes & 0xffffff);
    } else if (to == LR) {
        in->effect = ART_RA_LOST;
    }
}

// With an immediate offset and write-back, or with 12 bits of offset.
static void read_load_store(uint32_t first, uint32_t second, struct art_instruction *in)
{
    bool is_load = first >> 4 & 1, is_word = (first & 0x60) == 0x40, is_vector_space = (first & 0xff10) == 0xf900;
    unsigned base = first & 15, reg = second >> 12;
    bool long_offset = first >> 7 & 1;
    if (base == SP && (long_offset || second >> 11 & 1)) {
        int32_t offset = long_offset ? (int32_t)(second & 0xfff) : (int32_t)(second & 0xff);
        bool before = true;
        if (!long_offset) {
            if (!(second >> 9 & 1))
                offset = -offset;
            before = second >> 10 & 1;
            if (second >> 8 & 1 || !before)
                in->sp_change_bytes = offset;
        }
        if (is_word) {
            in->loads = is_load;
            art_add_access(in, reg == PC ? LR : reg, before ? offset : 0);
            if (is_load && reg == PC && in->sp_change_bytes) {
                in->effect = ART_RETURN;
                return;
            }
        }
    }
    if (is_vector_space && base == SP)
        in->effect = ART_SP_LOST;               // NEON structures, with write-back
    else if (is_load && (is_word || reg != PC)) // other loads into pc are hints
        writes(in, reg);
}

static void read_dual_or_exclusive(uint32_t first, uint32_t second, struct art_instruction *in)
{
    bool before = first >> 8 & 1, add = first >> 7 & 1, write_back = first >> 5 & 1, is_load = first >> 4 & 1;
    if (!before && !write_back) { // exclusives, table branches
        if ((first & 0xfff0) == 0xe8d0 && (second & 0xffe0) == 0xf000)
            in->effect = ART_SP_LOST; // its table follows, which is no code
        else if (is_load)
            writes(in, second >> 12);
        return;
    }
    int32_t offset = (int32_t)(second & 0xff) * 4;
    if ((first & 15) == SP) {
        offset = add ? offset : -offset;
        in->sp_change_bytes = write_back ? offset : 0;
        in->loads = is_load;
        art_add_access(in, second >> 12, before ? offset : 0);
        art_add_access(in, second >> 8 & 15, before ? offset + 4 : 4);
    }
    if (is_load) {
        writes(in, second >> 12);
        writes(in, second >> 8 & 15);
    }
}

static void read_multiple(uint32_t first, uint32_t second, struct art_instruction *in)
{
    if (first == 0xe92d)
        push(in, second);
    else if (first == 0xe8bd)
        pop(in, second);
    else if ((first & 15) == SP && first >> 5 & 1)
        in->effect = ART_SP_LOST;
    else if (first >> 4 & 1)
        for (unsigned reg = SP; reg <= PC; reg++)
            if (second >> reg & 1)
                writes(in, reg);
}

static void read_coprocessor(uint32_t first, uint32_t second, struct art_instruction *in)
{
    int32_t bytes = (int32_t)(second & 0xff) * 4;
    bool is_vfp = (second & 0x0e00) == 0x0a00;
    if ((first & 0xffbf) == 0xed2d && is_vfp) // vpush
        in->sp_change_bytes = -bytes;
    else if ((first & 0xffbf) == 0xecbd && is_vfp) // vpop
        in->sp_change_bytes = bytes;
    else if ((first & 0xee2f) == 0xec2d)
        in->effect = ART_SP_LOST;
    else if ((first & 0xfff0) == 0xec50) { // to two core registers
        writes(in, second >> 12);
        writes(in, first & 15);
    } else if ((first & 0xff10) == 0xee10 && (second & 0x10)) { // to one, or to the flags
        if (second >> 12 != PC)
            writes(in, second >> 12);
    }
}

static void read_one(struct base_bytes code, struct art_instruction *in)
{
    struct base_cursor c = base_cursor(code);
    uint32_t first = base_read_u16(&c);
    if (c.failed)
        return;
    if (first >> 11 < 0x1d) {
        in->size_bytes = 2;
        read_half(first, in);
        return;
    }
    uint32_t second = base_read_u16(&c);
    if (c.failed)
        return;
    in->size_bytes = 4;
    switch (first >> 9) {
    case 0x74: // e8xx, e9xx
        if (first & 0x40)
            read_dual_or_exclusive(first, second, in);
        else
            read_multiple(first, second, in);
        break;
    case 0x76: // ecxx, edxx
    case 0x77:
    case 0x7e:
    case 0x7f: read_coprocessor(first, second, in); break;
    case 0x7c: read_load_store(first, second, in); break;
    case 0x7d: // faxx, fbxx: with registers; long multiplications have two results
        if ((first & 0xff80) == 0xfb80)
            writes(in, second >> 12);
        if ((second >> 8 & 15) != PC)
            writes(in, second >> 8 & 15);
        break;
    default: read_data(first, second, in); break; // eaxx, ebxx, f0xx ... f7xx
    }
}

// Conditional instructions: up to four that follow an `it`. Compiled code moves numbers so; a frame that is undone on a
// condition is none that we follow.
static void judge_conditional(struct base_bytes code, struct art_instruction *it)
{
    unsigned left = 4 - (unsigned)__builtin_ctz(code.data[0] & 15u);
    for (size_t at = 2; left > 0 && at < code.size; left--) {
        struct art_instruction in;
        cfi_oat_read(read_one, (struct base_bytes){code.data + at, code.size - at}, &in);
        bool matters = in.sp_change_bytes || in.effect == ART_RETURN || in.effect == ART_LEAVES;
        if (in.size_bytes == 0 || matters)
            it->effect = ART_SP_LOST;
        at += in.size_bytes ? in.size_bytes : 2u;
    }
}

void cfi_oat_read_thumb(struct base_bytes code, struct art_instruction *in)
{
    read_one(code, in);
    if (in->size_bytes == 2 && code.data[1] == 0xbf && code.data[0] & 15)
        judge_conditional(code, in);
}
