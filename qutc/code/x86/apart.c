// SPDX-License-Identifier: Apache-2.0
// Where an instruction ends: prefixes, opcode, ModRM, SIB, displacement, immediate. The tables are Intel SDM volume 2,
// appendix A, and AMD's manual volume 3 for XOP and 3DNow!.
#include "qutc/code/x86/apart.h"

// What follows an opcode: '.' nothing; 'm' ModRM; 'b' ModRM and a byte; 'z' ModRM and an operand-sized number; '1' one
// byte; '2' two; '3' two and one (enter); 'i' an operand-sized number; 'v' the same, 8 bytes with REX.W; 'o' an
// address; 'r' a distance of one byte; 'R' of an operand's size; 'f' a far address; 't', 'T' ModRM, and a number where
// it is a test; '-' not known. Prefixes are read before.
static const char one_byte[] = "mmmm1i..mmmm1i.-mmmm1i..mmmm1i..mmmm1i-.mmmm1i-.mmmm1i-.mmmm1i-." // 00
                               "................................"                                 // 40
                               "..mm----iz1b...."                                                 // 60
                               "rrrrrrrrrrrrrrrr"                                                 // 70
                               "bzbbmmmmmmmmmmmm"                                                 // 80
                               "..........f....."                                                 // 90
                               "oooo....1i......"                                                 // a0
                               "11111111vvvvvvvv"                                                 // b0
                               "bb2.mmbz3.2..1.."                                                 // c0
                               "mmmm11..mmmmmmmm"                                                 // d0
                               "rrrr1111RRfr...."                                                 // e0
                               "-.--..tT......mm";                                                // f0

static const char after_0f[] = "mmmm-.......-m.b" // 00
                               "mmmmmmmmmmmmmmmm" // 10
                               "mmmm----mmmmmmmm" // 20
                               "......-.--------" // 30
                               "mmmmmmmmmmmmmmmm" // 40
                               "mmmmmmmmmmmmmmmm" // 50
                               "mmmmmmmmmmmmmmmm" // 60
                               "bbbbmmm.mm--mmmm" // 70
                               "RRRRRRRRRRRRRRRR" // 80
                               "mmmmmmmmmmmmmmmm" // 90
                               "...mbmmm...mbmmm" // a0
                               "mmmmmmmmmmbmmmmm" // b0
                               "mmbmbbbm........" // c0
                               "mmmmmmmmmmmmmmmm" // d0
                               "mmmmmmmmmmmmmmmm" // e0
                               "mmmmmmmmmmmmmmmm";

static unsigned read_u8(struct base_cursor *c)
{
    return base_read_u8(c);
}

// 16-bit addresses, of 32-bit code: bx/bp and si/di are not told apart, and nothing is known of them.
static void read_short_address(struct base_cursor *c, struct code_x86 *x)
{
    x->base = x->index = SI;
    unsigned bytes = x->mode == 1 ? 1 : x->mode == 2 || (x->mode == 0 && x->low == 6) ? 2 : 0;
    base_cursor_skip(c, bytes);
}

static void read_modrm(struct base_cursor *c, struct code_x86 *x)
{
    unsigned byte = read_u8(c);
    x->has_modrm = true;
    x->mode = (uint8_t)(byte >> 6);
    x->reg = (uint8_t)((byte >> 3 & 7) | (x->rex << 1 & 8));
    x->low = (uint8_t)((byte & 7) | (x->rex << 3 & 8));
    x->base = x->low;
    x->index = NO_NUMBER;
    if (x->mode == 3)
        return;
    if (x->other_address && !x->is_64) {
        read_short_address(c, x);
        return;
    }
    bool no_base = x->mode == 0 && (byte & 7) == 5;
    x->by_pc = no_base && x->is_64;
    if ((byte & 7) == 4) {
        unsigned sib = read_u8(c), index = (sib >> 3 & 7) | (x->rex << 2 & 8);
        x->base = (uint8_t)((sib & 7) | (x->rex << 3 & 8));
        x->index = index == SP ? NO_NUMBER : (uint8_t)index;
        x->scale = (uint8_t)(sib >> 6);
        no_base = x->mode == 0 && (sib & 7) == 5;
    }
    if (no_base)
        x->base = NO_NUMBER;
    if (x->mode == 1)
        x->displacement = (int8_t)read_u8(c);
    else if (x->mode == 2 || no_base)
        x->displacement = (int32_t)base_read_u32(c);
}

static void read_number(struct base_cursor *c, struct code_x86 *x, unsigned bytes)
{
    if (bytes == 0)
        return;
    uint64_t number = base_read_uint(c, bytes);
    unsigned shift = 64 - 8 * bytes;
    x->number = (int64_t)(number << shift) >> shift;
}

static bool read_operands(struct base_cursor *c, struct code_x86 *x, char shape)
{
    unsigned small = x->half_operand && !(x->rex & 8) ? 2 : 4;
    switch (shape) {
    case 'm':
    case 'b':
    case 'z':
    case 't':
    case 'T': read_modrm(c, x); break;
    default: break;
    }
    bool tests = (x->reg & 7) < 2;
    switch (shape) {
    case '.':
    case 'm': return true;
    case 'b':
    case '1':
    case 'r': read_number(c, x, 1); return true;
    case 'z':
    case 'i': read_number(c, x, small); return true;
    case 't': read_number(c, x, tests ? 1 : 0); return true;
    case 'T': read_number(c, x, tests ? small : 0); return true;
    case 'v': read_number(c, x, x->rex & 8 ? 8 : small); return true;
    // 66 before a near jump in 64-bit code: Intel's processors take 4 bytes all the same, and so do compilers that pad
    // calls for the linker (__tls_get_addr).
    case 'R': read_number(c, x, x->is_64 ? 4 : small); return true;
    case '2': read_number(c, x, 2); return true;
    case '3':
        read_number(c, x, 2);
        base_cursor_skip(c, 1);
        return true;
    case 'o': base_cursor_skip(c, (x->is_64 ? 8u : 4u) >> x->other_address); return true;
    case 'f': base_cursor_skip(c, small + 2); return !x->is_64;
    default: return false;
    }
}

// 62 is EVEX, c4 and c5 VEX, 8f XOP; in 32-bit code only where the next byte cannot be a ModRM of memory.
static bool read_vex(struct base_cursor *c, struct code_x86 *x, unsigned first)
{
    unsigned byte = read_u8(c), last = byte;
    x->rex = (uint8_t)(~byte >> 5 & 7); // R X B
    x->rex = first == 0xc5 ? (uint8_t)(x->rex & 4) : x->rex;
    x->map = (uint8_t)(first == 0xc5 ? 1 : byte & (first == 0x62 ? 7 : 31));
    if (first != 0xc5)
        last = read_u8(c);
    if (first != 0xc5 && last & 0x80)
        x->rex = (uint8_t)(x->rex | 8);
    x->third = (uint8_t)(~last >> 3 & 15);
    x->vector_bytes = last & 4 ? 32 : 16;
    x->half_operand = false;
    x->repeat = (last & 3) == 2 ? 0xf3 : (last & 3) == 3 ? 0xf2 : 0;
    if ((last & 3) == 1)
        x->half_operand = true;
    x->encoding = first == 0x8f ? ENCODING_XOP : ENCODING_VEX;
    if (first == 0x62) {
        x->encoding = ENCODING_EVEX;
        static const uint8_t bytes[] = {16, 32, 64, 64};
        x->vector_bytes = bytes[read_u8(c) >> 5 & 3];
    }
    x->opcode = (uint8_t)read_u8(c);
    bool is_wide = x->rex & 8;
    x->rex &= 7; // of vectors W says something else; numbers behind them are bytes
    char shape = '-';
    if (x->encoding == ENCODING_XOP) {
        shape = x->map == 8 ? 'b' : x->map == 9 ? 'm' : x->map == 10 ? 'z' : '-';
    } else if (x->map == 1) {
        shape = after_0f[x->opcode];
        // The conditional jumps' places hold instructions of masks.
        if (x->opcode == 0x7a || x->opcode == 0x7b)
            shape = 'm';
        else if (x->opcode != 0x77 && (shape == 'R' || shape == '.'))
            shape = '-';
    } else if (x->map == 2 || (x->encoding == ENCODING_EVEX && (x->map == 5 || x->map == 6))) {
        shape = 'm';
    } else if (x->map == 3) {
        shape = 'b';
    }
    if (x->encoding == ENCODING_XOP && shape == 'z')
        x->half_operand = false;
    bool good = read_operands(c, x, shape);
    if (is_wide)
        x->rex = (uint8_t)(x->rex | 8);
    // Displacements of one byte are scaled; nothing is known of the address then, but for its base.
    if (x->encoding == ENCODING_EVEX && x->mode == 1)
        x->displacement *= x->vector_bytes;
    return good;
}

static bool is_in_64_bit_code(unsigned op)
{
    switch (op) {
    case 0x06:
    case 0x07:
    case 0x0e:
    case 0x16:
    case 0x17:
    case 0x1e:
    case 0x1f:
    case 0x27:
    case 0x2f:
    case 0x37:
    case 0x3f:
    case 0x60:
    case 0x61:
    case 0x62:
    case 0x82:
    case 0x9a:
    case 0xc4:
    case 0xc5:
    case 0xce:
    case 0xd4:
    case 0xd5:
    case 0xd6:
    case 0xea: return false;
    default: return true;
    }
}

// Returns the first byte that is none.
static unsigned read_prefixes(struct base_cursor *c, struct code_x86 *x)
{
    for (;;) {
        unsigned byte = read_u8(c);
        switch (byte) {
        case 0x66: x->half_operand = true; break;
        case 0x67: x->other_address = true; break;
        case 0xf2:
        case 0xf3: x->repeat = (uint8_t)byte; break;
        case 0x64:
        case 0x65: x->by_segment = true; break;
        case 0x26:
        case 0x2e:
        case 0x36:
        case 0x3e:
        case 0xf0: break;
        default:
            if (!x->is_64 || (byte & 0xf0) != 0x40)
                return byte;
            // A REX that another prefix follows does not count.
            x->rex = (uint8_t)(byte & 15);
            x->has_rex = true;
            continue;
        }
        x->rex = 0;
        x->has_rex = false;
        if (c->failed)
            return 0;
    }
}

static bool read_map(struct base_cursor *c, struct code_x86 *x, unsigned byte)
{
    char shape;
    if (byte != 0x0f) {
        x->map = MAP_ONE;
        x->opcode = (uint8_t)byte;
        shape = one_byte[byte];
        if (x->is_64 && !is_in_64_bit_code(byte))
            return false;
    } else {
        byte = read_u8(c);
        x->map = byte == 0x38 ? MAP_0F38 : byte == 0x3a ? MAP_0F3A : MAP_0F;
        shape = after_0f[byte];
        if (x->map != MAP_0F) {
            shape = x->map == MAP_0F38 ? 'm' : 'b';
            byte = read_u8(c);
        }
        x->opcode = (uint8_t)byte;
        // SSE4a: extrq, insertq with two numbers.
        if (x->map == MAP_0F && byte == 0x78 && (x->half_operand || x->repeat == 0xf2)) {
            read_modrm(c, x);
            base_cursor_skip(c, 2);
            return true;
        }
    }
    return read_operands(c, x, shape);
}

enum { INSTRUCTION_BYTES_MAX = 15 };

bool code_x86_take_apart(struct base_bytes code, bool is_64, struct code_x86 *x)
{
    *x = (struct code_x86){.is_64 = is_64, .base = NO_NUMBER, .index = NO_NUMBER, .third = NO_NUMBER};
    if (code.size > INSTRUCTION_BYTES_MAX)
        code.size = INSTRUCTION_BYTES_MAX;
    struct base_cursor c = base_cursor(code);
    unsigned byte = read_prefixes(&c, x);
    if (c.failed)
        return false;
    struct base_cursor ahead = c;
    unsigned next = read_u8(&ahead);
    bool good;
    if ((byte == 0x62 || byte == 0xc4 || byte == 0xc5) && (is_64 || next >> 6 == 3))
        good = read_vex(&c, x, byte);
    else if (byte == 0x8f && (next & 31) >= 8)
        good = read_vex(&c, x, byte);
    else
        good = read_map(&c, x, byte);
    if (!good || c.failed)
        return false;
    x->size_bytes = (uint8_t)(code.size - base_cursor_left(&c));
    return true;
}
