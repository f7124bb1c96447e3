// SPDX-License-Identifier: Apache-2.0
#include "bytecode/x86_64/emit.h"

enum { MOD_OFFSET_8 = 0x40, MOD_OFFSET_32 = 0x80, MOD_REGISTER = 0xc0 };
enum { REX = 0x40, REX_B = 1, REX_R = 4, REX_W = 8 };

void x86_64_byte(struct emit *emit, unsigned byte)
{
    if (emit->to)
        emit->to[emit->at] = (uint8_t)byte;
    emit->at++;
}

void x86_64_number(struct emit *emit, uint64_t number, unsigned bytes)
{
    for (unsigned i = 0; i < bytes; i++)
        x86_64_byte(emit, (unsigned)(number >> (8 * i) & 0xff));
}

static bool fits_byte(int32_t number)
{
    return number >= INT8_MIN && number <= INT8_MAX;
}

static void prefix(struct emit *emit, enum emit_width width, unsigned reg, unsigned rm)
{
    const unsigned bits = (width == WIDTH_64 ? REX_W : 0u) | (reg >= R8 ? REX_R : 0u) | (rm >= R8 ? REX_B : 0u);
    if (bits)
        x86_64_byte(emit, REX | bits);
}

static void modrm_register(struct emit *emit, unsigned reg, unsigned rm)
{
    x86_64_byte(emit, MOD_REGISTER | (reg & 7) << 3 | (rm & 7));
}

// Not of rsp and r12, which need a byte more.
static void modrm_memory(struct emit *emit, unsigned reg, unsigned base, int32_t offset)
{
    const bool is_near = fits_byte(offset);
    x86_64_byte(emit, (is_near ? MOD_OFFSET_8 : MOD_OFFSET_32) | (reg & 7) << 3 | (base & 7));
    x86_64_number(emit, (uint32_t)offset, is_near ? 1 : 4);
}

void x86_64_registers(struct emit *emit, enum emit_width width, unsigned opcode, unsigned from, unsigned to)
{
    prefix(emit, width, from, to);
    x86_64_byte(emit, opcode);
    modrm_register(emit, from, to);
}

void x86_64_extension(struct emit *emit, enum emit_width width, unsigned opcode, unsigned to, unsigned from)
{
    prefix(emit, width, to, from);
    x86_64_byte(emit, 0x0f);
    x86_64_byte(emit, opcode);
    modrm_register(emit, to, from);
}

static void access_prefix(struct emit *emit, unsigned bytes, unsigned reg, unsigned base)
{
    if (bytes == 2)
        x86_64_byte(emit, 0x66);
    prefix(emit, bytes == 8 ? WIDTH_64 : WIDTH_32, reg, base);
}

void x86_64_store(struct emit *emit, unsigned bytes, unsigned base, int32_t offset, unsigned from)
{
    access_prefix(emit, bytes, from, base);
    x86_64_byte(emit, bytes == 1 ? 0x88 : 0x89);
    modrm_memory(emit, from, base, offset);
}

void x86_64_store_number(struct emit *emit, unsigned bytes, unsigned base, int32_t offset, int32_t number)
{
    access_prefix(emit, bytes, 0, base);
    x86_64_byte(emit, bytes == 1 ? 0xc6 : 0xc7);
    modrm_memory(emit, 0, base, offset);
    x86_64_number(emit, (uint32_t)number, bytes < 4 ? bytes : 4);
}

void x86_64_load(struct emit *emit, unsigned bytes, unsigned to, unsigned base, int32_t offset)
{
    prefix(emit, bytes == 8 ? WIDTH_64 : WIDTH_32, to, base);
    if (bytes < 4)
        x86_64_byte(emit, 0x0f);
    x86_64_byte(emit, bytes == 1 ? 0xb6 : bytes == 2 ? 0xb7 : 0x8b);
    modrm_memory(emit, to, base, offset);
}

void x86_64_group(struct emit *emit, enum emit_width width, unsigned operation, unsigned to, unsigned from)
{
    x86_64_registers(emit, width, operation << 3 | 1, from, to);
}

void x86_64_group_number(struct emit *emit, enum emit_width width, unsigned operation, unsigned to, int32_t number)
{
    const bool is_short = fits_byte(number);
    x86_64_registers(emit, width, is_short ? 0x83 : 0x81, operation, to);
    x86_64_number(emit, (uint32_t)number, is_short ? 1 : 4);
}

void x86_64_unary(struct emit *emit, enum emit_width width, unsigned operation, unsigned to)
{
    x86_64_registers(emit, width, 0xf7, operation, to);
}

void x86_64_shift(struct emit *emit, enum emit_width width, unsigned operation, unsigned to)
{
    x86_64_registers(emit, width, 0xd3, operation, to);
}

void x86_64_shift_number(struct emit *emit, enum emit_width width, unsigned operation, unsigned to, unsigned by)
{
    x86_64_registers(emit, width, 0xc1, operation, to);
    x86_64_byte(emit, by);
}

void x86_64_multiply(struct emit *emit, enum emit_width width, unsigned to, unsigned from)
{
    prefix(emit, width, to, from);
    x86_64_byte(emit, 0x0f);
    x86_64_byte(emit, 0xaf);
    modrm_register(emit, to, from);
}

void x86_64_multiply_number(struct emit *emit, enum emit_width width, unsigned to, int32_t number)
{
    x86_64_registers(emit, width, 0x69, to, to);
    x86_64_number(emit, (uint32_t)number, 4);
}

void x86_64_test(struct emit *emit, enum emit_width width, unsigned a, unsigned b)
{
    x86_64_registers(emit, width, 0x85, b, a);
}

void x86_64_test_number(struct emit *emit, enum emit_width width, unsigned a, int32_t number)
{
    x86_64_registers(emit, width, 0xf7, 0, a);
    x86_64_number(emit, (uint32_t)number, 4);
}

void x86_64_move(struct emit *emit, enum emit_width width, unsigned to, unsigned from)
{
    x86_64_registers(emit, width, 0x89, from, to);
}

void x86_64_move_number(struct emit *emit, unsigned to, uint64_t number)
{
    if (number == 0) {
        x86_64_group(emit, WIDTH_32, 6, to, to);
    } else if (number <= UINT32_MAX) {
        prefix(emit, WIDTH_32, 0, to);
        x86_64_byte(emit, 0xb8 | (to & 7));
        x86_64_number(emit, number, 4);
    } else if ((uint64_t)(int64_t)(int32_t)(uint32_t)number == number) {
        x86_64_registers(emit, WIDTH_64, 0xc7, 0, to);
        x86_64_number(emit, number, 4);
    } else {
        prefix(emit, WIDTH_64, 0, to);
        x86_64_byte(emit, 0xb8 | (to & 7));
        x86_64_number(emit, number, 8);
    }
}

uint32_t x86_64_jump_ahead(struct emit *emit, unsigned opcode)
{
    x86_64_byte(emit, opcode);
    x86_64_byte(emit, 0);
    return emit->at;
}

void x86_64_land(struct emit *emit, uint32_t jump)
{
    if (emit->to)
        emit->to[jump - 1] = (uint8_t)(emit->at - jump);
}
