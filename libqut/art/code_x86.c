// SPDX-License-Identifier: Apache-2.0
// x86 and x86-64, Intel SDM volume 2, appendix A. What compilers of Java code do not write is refused: far calls,
// segments, I/O, AVX-512, 16-bit addresses.
#include "libqut/art/instruction.h"

#include <string.h>

enum { SP = 4 };

enum shape {
    NONE, // the opcode alone
    M,    // ModRM
    M1,   // ModRM and one byte
    MZ,   // ModRM and an operand-sized number
    I1,   // one byte
    IZ,   // an operand-sized number
    R4,   // a distance of 4 bytes
    IV,   // b8 ... bf: 8 bytes with REX.W
    OFF,  // a0 ... a3: an address
    BAD,
};

// A read past the end gives 0, and so do all that follow.
struct cursor {
    const uint8_t *start, *at, *end;
    bool failed;
};

struct decoder {
    struct cursor c;
    bool is_64, half_operand, wide; // 66; REX.W
    unsigned rex;
    unsigned mode, middle, low; // of ModRM; middle and low with REX
    unsigned base;              // SP where the address is sp + displacement, else another number
    int32_t displacement;
};

static void skip(struct cursor *c, size_t bytes)
{
    c->failed |= bytes > (size_t)(c->end - c->at);
    c->at = c->failed ? c->end : c->at + bytes;
}

static unsigned read_u8(struct cursor *c)
{
    const uint8_t *at = c->at;
    skip(c, 1);
    return c->failed ? 0 : *at;
}

static uint32_t read_u32(struct cursor *c)
{
    const uint8_t *at = c->at;
    uint32_t number = 0;
    skip(c, sizeof number);
    if (!c->failed)
        memcpy(&number, at, sizeof number);
    return number;
}

static void read_modrm(struct decoder *d)
{
    unsigned byte = read_u8(&d->c);
    d->mode = byte >> 6;
    d->middle = (byte >> 3 & 7) | (d->rex << 1 & 8);
    d->low = (byte & 7) | (d->rex << 3 & 8);
    d->base = d->low;
    d->displacement = 0;
    if (d->mode == 3)
        return;
    bool no_base = false;
    if ((byte & 7) == 4) {
        unsigned sib = read_u8(&d->c), index = (sib >> 3 & 7) | (d->rex << 2 & 8);
        d->base = index == 4 ? (sib & 7) | (d->rex << 3 & 8) : 0xff;
        no_base = (sib & 7) == 5 && d->mode == 0;
    }
    if (d->mode == 1)
        d->displacement = (int8_t)read_u8(&d->c);
    else if (d->mode == 2 || no_base || (d->mode == 0 && (byte & 7) == 5))
        d->displacement = (int32_t)read_u32(&d->c);
    if (no_base)
        d->base = 0xff;
}

static enum shape shape_of(unsigned op, bool is_64)
{
    if (op < 0x40)
        return (op & 7) < 4 ? M : (op & 7) == 4 ? I1 : (op & 7) == 5 ? IZ : BAD;
    switch (op) {
    case 0x60 ... 0x62: return BAD;
    case 0x63: return M;
    case 0x67: return BAD; // addresses of another size
    case 0x68: return IZ;
    case 0x69: return MZ;
    case 0x6a: return I1;
    case 0x6b: return M1;
    case 0x6c ... 0x6f: return BAD;
    case 0x70 ... 0x7f: return I1;
    case 0x80: return M1;
    case 0x81: return MZ;
    case 0x82: return is_64 ? BAD : M1;
    case 0x83: return M1;
    case 0x84 ... 0x8b:
    case 0x8d:
    case 0x8f: return M;
    case 0x8c:
    case 0x8e:
    case 0x9a: return BAD;
    case 0xa0 ... 0xa3: return OFF;
    case 0xa8: return I1;
    case 0xa9: return IZ;
    case 0xb0 ... 0xb7: return I1;
    case 0xb8 ... 0xbf: return IV;
    case 0xc0:
    case 0xc1:
    case 0xc6: return M1;
    case 0xc7: return MZ;
    case 0xc3:
    case 0xcc: return NONE;
    case 0xc2:
    case 0xc4: // VEX is dealt with before
    case 0xc5:
    case 0xc8 ... 0xcb:
    case 0xcd ... 0xcf: return BAD;
    case 0xd0 ... 0xd3:
    case 0xd8 ... 0xdf: return M;
    case 0xd4 ... 0xd7: return BAD;
    case 0xe0 ... 0xe3: return I1;
    case 0xe4 ... 0xe7: return BAD;
    case 0xe8:
    case 0xe9: return R4;
    case 0xea: return BAD;
    case 0xeb: return I1;
    case 0xec ... 0xf1: return BAD;
    case 0xf6:
    case 0xf7:
    case 0xfe:
    case 0xff: return M;
    default: return NONE;
    }
}

static enum shape shape_of_0f(unsigned op)
{
    switch (op) {
    case 0x0b:
    case 0x31:
    case 0x77:
    case 0xa2:
    case 0xc8 ... 0xcf: return NONE;
    case 0x0d:
    case 0x10 ... 0x1f:
    case 0x28 ... 0x2f:
    case 0x40 ... 0x6f:
    case 0x74 ... 0x76:
    case 0x7c ... 0x7f:
    case 0x90 ... 0x9f:
    case 0xa3:
    case 0xa5:
    case 0xab:
    case 0xad ... 0xb1:
    case 0xb3:
    case 0xb6 ... 0xb8:
    case 0xbb ... 0xc1:
    case 0xc3:
    case 0xc7:
    case 0xd0 ... 0xff: return M;
    case 0x70 ... 0x73:
    case 0xa4:
    case 0xac:
    case 0xba:
    case 0xc2:
    case 0xc4 ... 0xc6: return M1;
    case 0x80 ... 0x8f: return R4;
    default: return BAD;
    }
}

static void read_operands(struct decoder *d, enum shape shape)
{
    unsigned number_bytes = d->half_operand && !d->wide ? 2 : 4;
    if (shape == M || shape == M1 || shape == MZ)
        read_modrm(d);
    switch (shape) {
    case M1:
    case I1: skip(&d->c, 1); break;
    case MZ:
    case IZ: skip(&d->c, number_bytes); break;
    case R4: skip(&d->c, 4); break;
    case IV: skip(&d->c, d->wide ? 8 : number_bytes); break;
    case OFF: skip(&d->c, d->is_64 ? 8 : 4); break;
    default: break;
    }
}

static void push(const struct decoder *d, struct art_instruction *in, unsigned reg)
{
    int32_t word = d->is_64 ? 8 : 4;
    in->sp_change_bytes = -word;
    if (d->half_operand)
        in->effect = ART_SP_LOST;
    else if (reg < 16)
        art_add_access(in, reg, -word);
}

static void pop(const struct decoder *d, struct art_instruction *in, unsigned reg)
{
    in->sp_change_bytes = d->is_64 ? 8 : 4;
    if (d->half_operand || reg == SP)
        in->effect = ART_SP_LOST;
    else if (reg < 16) {
        in->loads = true;
        art_add_access(in, reg, 0);
    }
}

// 81, 83 with sp: what is added is the instruction's last bytes.
static void add_to_sp(const struct decoder *d, struct art_instruction *in, int32_t number)
{
    unsigned operation = d->middle & 7;
    if (operation == 7) // cmp
        return;
    if ((operation != 0 && operation != 5) || d->wide != d->is_64 || d->half_operand || number <= -(1 << 24) ||
        number >= 1 << 24)
        in->effect = ART_SP_LOST;
    else
        in->sp_change_bytes = operation == 0 ? number : -number;
}

static int32_t last_number(const struct decoder *d, unsigned bytes)
{
    if (bytes == 1)
        return (int8_t)d->c.at[-1];
    uint32_t number;
    memcpy(&number, d->c.at - 4, sizeof number);
    return (int32_t)number;
}

static void branch(const struct decoder *d, struct art_instruction *in, unsigned number_bytes)
{
    art_set_branch(in, (int32_t)((uint32_t)(d->c.at - d->c.start) + (uint32_t)last_number(d, number_bytes)));
}

static void judge_ff(const struct decoder *d, struct art_instruction *in)
{
    switch (d->middle & 7) {
    case 2: in->effect = ART_CALL; break;
    case 4: in->effect = ART_LEAVES; break;
    case 6: push(d, in, d->mode == 3 ? d->low : 16); break;
    case 3:
    case 5:
    case 7: in->effect = ART_SP_LOST; break;
    default: break;
    }
}

// Whether an instruction of one byte of opcode has a register as destination that is sp.
static bool writes_sp(const struct decoder *d, unsigned op)
{
    bool low_is_sp = d->mode == 3 && d->low == SP, middle_is_sp = d->middle == SP;
    if (op < 0x38)
        return (op & 7) == 1 ? low_is_sp : (op & 7) == 3 ? middle_is_sp : false;
    switch (op) {
    case 0x63:
    case 0x69:
    case 0x6b:
    case 0x8b: return middle_is_sp;
    case 0x87: return low_is_sp || middle_is_sp;
    case 0x89:
    case 0xc1:
    case 0xc7:
    case 0xd1:
    case 0xd3: return low_is_sp;
    case 0xf7: return low_is_sp && (d->middle & 6) == 2; // not, neg
    case 0xff: return low_is_sp && (d->middle & 7) <= 1;
    default: return false;
    }
}

static void judge(struct decoder *d, unsigned op, struct art_instruction *in)
{
    if (!d->is_64 && op >= 0x40 && op <= 0x4f) {
        if ((op & 7) == SP)
            in->effect = ART_SP_LOST;
    } else if (op >= 0x50 && op <= 0x57) {
        push(d, in, (op & 7) | (d->rex << 3 & 8));
    } else if (op >= 0x58 && op <= 0x5f) {
        pop(d, in, (op & 7) | (d->rex << 3 & 8));
    } else if (op == 0x68 || op == 0x6a || op == 0x9c) {
        push(d, in, 16);
    } else if (op == 0x9d) {
        pop(d, in, 16);
    } else if ((op == 0x81 || op == 0x83) && d->mode == 3 && d->low == SP) {
        add_to_sp(d, in, last_number(d, op == 0x83 ? 1 : 4));
    } else if (op == 0x8d && d->middle == SP) { // lea sp, [sp + displacement]
        if (d->base != SP || d->mode == 3 || d->wide != d->is_64 || d->displacement <= -(1 << 24) ||
            d->displacement >= 1 << 24)
            in->effect = ART_SP_LOST;
        else
            in->sp_change_bytes = d->displacement;
    } else if (op == 0x8f) {
        pop(d, in, d->mode == 3 ? d->low : 16);
    } else if (op == 0xc3) {
        in->effect = ART_RETURN;
    } else if (op == 0xcc || op == 0xe9 || op == 0xeb) {
        in->effect = ART_LEAVES;
        if (op != 0xcc)
            branch(d, in, op == 0xeb ? 1 : 4);
    } else if ((op >= 0x70 && op <= 0x7f) || (op >= 0xe0 && op <= 0xe3)) {
        branch(d, in, 1);
    } else if (op == 0xe8) { // a call of the next instruction pushes its address
        if (last_number(d, 4) == 0)
            in->sp_change_bytes = d->is_64 ? -8 : -4;
        else
            in->effect = ART_CALL;
    } else if (((op & 0xf8) == 0xb8 || (op >= 0x91 && op <= 0x97)) && (op & 7) == SP && !(d->rex & 1)) {
        in->effect = ART_SP_LOST;
    } else if (op == 0xff && !writes_sp(d, op)) {
        judge_ff(d, in);
    } else if (writes_sp(d, op)) {
        in->effect = ART_SP_LOST;
    } else if ((op == 0x89 || op == 0x8b) && d->mode != 3 && d->base == SP && d->wide == d->is_64 && !d->half_operand) {
        in->loads = op == 0x8b; // 6.0's compiler saved registers so
        art_add_access(in, d->middle, d->displacement);
    }
}

// 66, f2, f3, segments, lock; then REX. Returns the opcode.
static unsigned read_prefixes(struct decoder *d)
{
    for (;;) {
        unsigned byte = read_u8(&d->c);
        switch (byte) {
        case 0x66: d->half_operand = true; continue;
        case 0x26:
        case 0x2e:
        case 0x36:
        case 0x3e:
        case 0x64:
        case 0x65:
        case 0xf0:
        case 0xf2:
        case 0xf3: continue;
        default: break;
        }
        if (d->is_64 && (byte & 0xf0) == 0x40) {
            d->rex = byte & 15;
            d->wide = byte >> 3 & 1;
            byte = read_u8(&d->c);
        }
        return byte;
    }
}

// Vectors do not touch sp. False: not one that has been known.
static bool read_vex(struct decoder *d, unsigned first)
{
    unsigned map = 1;
    unsigned byte = read_u8(&d->c);
    if (!d->is_64 && byte >> 6 != 3)
        return false; // les, lds
    if (first == 0xc4) {
        map = byte & 31;
        skip(&d->c, 1);
    }
    unsigned op = read_u8(&d->c);
    enum shape shape = map == 1 ? shape_of_0f(op) : map == 2 ? M : map == 3 ? M1 : BAD;
    if (shape == BAD || shape == R4)
        return false;
    d->rex = 0;
    read_operands(d, shape);
    return !(map == 2 && d->middle == SP && op >= 0xf0); // BMI: a general register is written
}

static bool read_0f(struct decoder *d, struct art_instruction *in)
{
    unsigned op = read_u8(&d->c);
    if (op == 0x38 || op == 0x3a) {
        skip(&d->c, 1);
        read_operands(d, op == 0x38 ? M : M1);
        return true;
    }
    enum shape shape = shape_of_0f(op);
    if (shape == BAD)
        return false;
    read_operands(d, shape);
    bool to_register = (op >= 0x40 && op <= 0x4f) || op == 0xaf || op == 0xb6 || op == 0xb7 || op == 0xb8 ||
                       (op >= 0xbc && op <= 0xbf) || op == 0x2c || op == 0x2d;
    if (d->c.failed)
        return false;
    if (op == 0x0b)
        in->effect = ART_LEAVES;
    else if (op >= 0x80 && op <= 0x8f)
        branch(d, in, 4);
    else if ((to_register && d->middle == SP) || (op == 0x7e && d->mode == 3 && d->low == SP))
        in->effect = ART_SP_LOST;
    return true;
}

void art_read_x86(const uint8_t *code, size_t size, bool is_64, struct art_instruction *in)
{
    memset(in, 0, offsetof(struct art_instruction, access));
    size = size < ART_X86_BYTES_MAX ? size : ART_X86_BYTES_MAX;
    struct decoder d = {.c = {code, code, code + size, false}, .is_64 = is_64};
    unsigned op = read_prefixes(&d);
    bool known = true;
    if (op == 0x0f) {
        known = read_0f(&d, in);
    } else if ((op == 0xc4 || op == 0xc5) && !d.rex) {
        known = read_vex(&d, op);
    } else {
        enum shape shape = !is_64 && op >= 0x40 && op <= 0x4f ? NONE : shape_of(op, is_64);
        known = shape != BAD;
        if (known) {
            read_operands(&d, shape);
            // f6 and f7 have a number where they test.
            if (op == 0xf6 && (d.middle & 7) < 2)
                read_operands(&d, I1);
            else if (op == 0xf7 && (d.middle & 7) < 2)
                read_operands(&d, IZ);
        }
        if (known && !d.c.failed)
            judge(&d, op, in);
    }
    if (known && !d.c.failed)
        in->size_bytes = (uint8_t)(d.c.at - d.c.start);
}
