// SPDX-License-Identifier: Apache-2.0
// Each instruction becomes some of x86-64's. Registers of a program are registers of the machine, chosen such that
// helpers find their arguments where C wants them (enter.S), and that what helpers keep is what they may not change.
//
// What is looked at twice is the length alone: jumps lead forwards, to where the first look has found that an
// instruction begins.
#include "bytecode/x86_64/translate.h"

#include <assert.h>
#include <stddef.h>

#include "bytecode/x86_64/emit.h"
#include "formats/qut_calls_thunk.h"

// enter.S
#pragma GCC visibility push(hidden)
extern const char x86_64_call[];
#pragma GCC visibility pop

enum {
    HEAD_BYTES = 16, // where calls of helpers go; enter.S
    PART_BYTES_MAX = QUT_CALLS_THUNK_BYTES_MAX - (int)sizeof(struct qut_calls_origin),
    // Of an instruction: those that are usual, and divisions.
    USUAL_BYTES_MAX = 18,
    DIVISION_BYTES_MAX = 56,
    PART_END_BYTES_MAX = 2 + X86_64_ALIGNMENT - 1, // a jump over what stands there
    SHORT_JUMP = 0xeb,
    SHORT_IF = 0x70, // and a condition
};
// Two of any kind are in each part, as translate.h says.
static_assert(HEAD_BYTES + 2 * DIVISION_BYTES_MAX + PART_END_BYTES_MAX <= PART_BYTES_MAX, "translate.h");

enum condition { BELOW = 2, NOT_BELOW, EQUAL, NOT_EQUAL, NOT_ABOVE, ABOVE, LESS = 12, NOT_LESS, NOT_GREATER, GREATER };
enum group { ADD = 0, OR = 1, AND = 4, SUB = 5, XOR = 6, CMP = 7 };
enum unary { NEG = 3, DIV = 6, IDIV = 7 };
enum shift { SHL = 4, SHR = 5, SAR = 7 };

// r0 to r10. Free for what an instruction needs in between: rsi, rdi, r11. r12 is the host.
static const uint8_t places_of[QUT_PROBE_REGISTERS] = {RAX, RDX, RCX, R8, R9, R10, RBX, R13, R14, R15, RBP};

struct translation {
    struct emit emit;
    const struct qut_probe_instruction *code;
    uint32_t count, part; // where the part begins
    uint32_t *places;
};

static enum emit_width width_of(const struct qut_probe_instruction *i)
{
    const uint8_t class = i->opcode & QUT_PROBE_CLASS_MASK;
    return class == QUT_PROBE_CLASS_ALU64 || class == QUT_PROBE_CLASS_JMP ? WIDTH_64 : WIDTH_32;
}

static unsigned to_of(const struct qut_probe_instruction *i)
{
    return places_of[qut_probe_destination(i)];
}

static unsigned from_of(const struct qut_probe_instruction *i)
{
    return places_of[qut_probe_source(i)];
}

static bool has_source(const struct qut_probe_instruction *i)
{
    return (i->opcode & QUT_PROBE_SOURCE_X) != 0;
}

// ---- operations

static void group(struct emit *emit, const struct qut_probe_instruction *i, enum group operation)
{
    if (has_source(i))
        x86_64_group(emit, width_of(i), operation, to_of(i), from_of(i));
    else
        x86_64_group_number(emit, width_of(i), operation, to_of(i), i->immediate);
}

static void multiply(struct emit *emit, const struct qut_probe_instruction *i)
{
    if (has_source(i))
        x86_64_multiply(emit, width_of(i), to_of(i), from_of(i));
    else
        x86_64_multiply_number(emit, width_of(i), to_of(i), i->immediate);
}

// By rcx, which is somebody's. The processor takes as many bits of it as are asked for.
static void shift_by_register(struct emit *emit, const struct qut_probe_instruction *i, enum shift operation)
{
    const unsigned to = to_of(i), from = from_of(i);
    if (from == RCX) {
        x86_64_shift(emit, width_of(i), operation, to);
        return;
    }
    x86_64_move(emit, WIDTH_64, R11, RCX);
    x86_64_move(emit, WIDTH_64, RCX, from);
    x86_64_shift(emit, width_of(i), operation, to == RCX ? (unsigned)R11 : to);
    x86_64_move(emit, WIDTH_64, RCX, R11);
}

static void shift(struct emit *emit, const struct qut_probe_instruction *i, enum shift operation)
{
    const unsigned by = (unsigned)i->immediate & (width_of(i) == WIDTH_64 ? 63 : 31);
    if (has_source(i))
        shift_by_register(emit, i, operation);
    else if (by != 0)
        x86_64_shift_number(emit, width_of(i), operation, to_of(i), by);
    else if (width_of(i) == WIDTH_32)
        x86_64_move(emit, WIDTH_32, to_of(i), to_of(i));
}

static void move(struct emit *emit, const struct qut_probe_instruction *i)
{
    const enum emit_width width = width_of(i);
    if (!has_source(i))
        x86_64_move_number(emit, to_of(i),
                           width == WIDTH_64 ? (uint64_t)(int64_t)i->immediate : (uint32_t)i->immediate);
    else if (i->offset == 8)
        x86_64_extension(emit, width, 0xbe, to_of(i), from_of(i));
    else if (i->offset == 16)
        x86_64_extension(emit, width, 0xbf, to_of(i), from_of(i));
    else if (i->offset == 32)
        x86_64_registers(emit, width, 0x63, to_of(i), from_of(i)); // movsxd: ModRM.reg is what is written
    else
        x86_64_move(emit, width, to_of(i), from_of(i));
}

// ---- division: of rdx and rax by r11, which gives rax and leaves rdx

static void divide_as_machine(struct emit *emit, enum emit_width width, bool is_signed)
{
    if (!is_signed) {
        x86_64_group(emit, WIDTH_32, XOR, RDX, RDX);
    } else {
        if (width == WIDTH_64)
            x86_64_byte(emit, 0x48);
        x86_64_byte(emit, 0x99); // rdx becomes the sign
    }
    x86_64_unary(emit, width, is_signed ? IDIV : DIV, R11);
}

// By 0 there is 0, and all is left; the least number by -1, which the processor refuses, is itself, and nothing left.
static void divide_in_place(struct emit *emit, enum emit_width width, bool is_signed, bool is_remainder)
{
    uint32_t over[2], count = 0;
    x86_64_test(emit, width, R11, R11);
    const uint32_t not_zero = x86_64_jump_ahead(emit, SHORT_IF | NOT_EQUAL);
    if (is_remainder)
        x86_64_move(emit, width, RDX, RAX);
    else
        x86_64_group(emit, WIDTH_32, XOR, RAX, RAX);
    over[count++] = x86_64_jump_ahead(emit, SHORT_JUMP);
    x86_64_land(emit, not_zero);
    if (is_signed) {
        x86_64_group_number(emit, width, CMP, R11, -1);
        const uint32_t usual = x86_64_jump_ahead(emit, SHORT_IF | NOT_EQUAL);
        if (is_remainder)
            x86_64_group(emit, WIDTH_32, XOR, RDX, RDX);
        else
            x86_64_unary(emit, width, NEG, RAX);
        over[count++] = x86_64_jump_ahead(emit, SHORT_JUMP);
        x86_64_land(emit, usual);
    }
    divide_as_machine(emit, width, is_signed);
    while (count)
        x86_64_land(emit, over[--count]);
}

static void move_if(struct emit *emit, bool is_other, unsigned to, unsigned from)
{
    if (is_other)
        x86_64_move(emit, WIDTH_64, to, from);
}

static void divide(struct emit *emit, const struct qut_probe_instruction *i, bool is_remainder)
{
    const enum emit_width width = width_of(i);
    const unsigned to = to_of(i);
    if (has_source(i))
        x86_64_move(emit, WIDTH_64, R11, from_of(i));
    else
        x86_64_move_number(emit, R11, (uint64_t)(int64_t)i->immediate);
    move_if(emit, to != RAX, RDI, RAX);
    move_if(emit, to != RDX, RSI, RDX);
    move_if(emit, to != RAX, RAX, to);
    if (has_source(i) || i->immediate == 0 || i->immediate == -1)
        divide_in_place(emit, width, i->offset == 1, is_remainder);
    else
        divide_as_machine(emit, width, i->offset == 1);
    const unsigned result = is_remainder ? RDX : RAX;
    move_if(emit, to != result, to, result);
    move_if(emit, to != RAX, RAX, RDI);
    move_if(emit, to != RDX, RDX, RSI);
}

static void operation(struct emit *emit, const struct qut_probe_instruction *i)
{
    switch (i->opcode & QUT_PROBE_CODE_MASK) {
    case QUT_PROBE_ADD: group(emit, i, ADD); break;
    case QUT_PROBE_SUB: group(emit, i, SUB); break;
    case QUT_PROBE_OR: group(emit, i, OR); break;
    case QUT_PROBE_AND: group(emit, i, AND); break;
    case QUT_PROBE_XOR: group(emit, i, XOR); break;
    case QUT_PROBE_MUL: multiply(emit, i); break;
    case QUT_PROBE_DIV: divide(emit, i, false); break;
    case QUT_PROBE_MOD: divide(emit, i, true); break;
    case QUT_PROBE_LSH: shift(emit, i, SHL); break;
    case QUT_PROBE_RSH: shift(emit, i, SHR); break;
    case QUT_PROBE_ARSH: shift(emit, i, SAR); break;
    case QUT_PROBE_NEG: x86_64_unary(emit, width_of(i), NEG, to_of(i)); break;
    default: move(emit, i); break;
    }
}

// ---- jumps

static void compare(struct emit *emit, const struct qut_probe_instruction *i)
{
    const enum emit_width width = width_of(i);
    const bool is_test = (i->opcode & QUT_PROBE_CODE_MASK) == QUT_PROBE_JSET;
    if (is_test && has_source(i))
        x86_64_test(emit, width, to_of(i), from_of(i));
    else if (is_test)
        x86_64_test_number(emit, width, to_of(i), i->immediate);
    else if (!has_source(i) && i->immediate == 0) // the same by two or three bytes
        x86_64_test(emit, width, to_of(i), to_of(i));
    else
        group(emit, i, CMP);
}

static enum condition condition_of(const struct qut_probe_instruction *i)
{
    switch (i->opcode & QUT_PROBE_CODE_MASK) {
    case QUT_PROBE_JEQ: return EQUAL;
    case QUT_PROBE_JGT: return ABOVE;
    case QUT_PROBE_JGE: return NOT_BELOW;
    case QUT_PROBE_JLT: return BELOW;
    case QUT_PROBE_JLE: return NOT_ABOVE;
    case QUT_PROBE_JSGT: return GREATER;
    case QUT_PROBE_JSGE: return NOT_LESS;
    case QUT_PROBE_JSLT: return LESS;
    case QUT_PROBE_JSLE: return NOT_GREATER;
    default: return NOT_EQUAL; // JNE, JSET
    }
}

static void call(struct translation *translation, uint32_t helper)
{
    enum { JUMP_BYTES = 6 };
    struct emit *emit = &translation->emit;
    x86_64_move_number(emit, RSI, helper);
    x86_64_number(emit, 0x1d8d4c, 3); // lea JUMP_BYTES(%rip), %r11
    x86_64_number(emit, JUMP_BYTES, 4);
    x86_64_number(emit, 0x25ff, 2); // jmp *head(%rip)
    x86_64_number(emit, 0 - (emit->at + 4), 4);
}

static void jump(struct translation *translation, uint32_t number)
{
    const struct qut_probe_instruction *i = &translation->code[number];
    struct emit *emit = &translation->emit;
    const uint8_t code = i->opcode & QUT_PROBE_CODE_MASK;
    if (code == QUT_PROBE_CALL) {
        call(translation, (uint32_t)i->immediate);
    } else if (code == QUT_PROBE_EXIT) {
        x86_64_byte(emit, 0xc3);
    } else {
        if (code == QUT_PROBE_JA) {
            x86_64_byte(emit, 0xe9);
        } else {
            compare(emit, i);
            x86_64_byte(emit, 0x0f);
            x86_64_byte(emit, 0x80 | (unsigned)condition_of(i));
        }
        const uint32_t to = emit->to ? translation->places[number + 1 + (uint16_t)i->offset] : 0;
        x86_64_number(emit, to - (emit->at + 4), 4);
    }
}

static void instruction(struct translation *translation, uint32_t number)
{
    const struct qut_probe_instruction *i = &translation->code[number];
    struct emit *emit = &translation->emit;
    const unsigned bytes = qut_probe_access_bytes(i->opcode);
    switch (i->opcode & QUT_PROBE_CLASS_MASK) {
    case QUT_PROBE_CLASS_JMP:
    case QUT_PROBE_CLASS_JMP32: jump(translation, number); break;
    case QUT_PROBE_CLASS_LD:
        x86_64_move_number(emit, to_of(i), (uint32_t)i->immediate | (uint64_t)(uint32_t)i[1].immediate << 32);
        break;
    case QUT_PROBE_CLASS_LDX: x86_64_load(emit, bytes, to_of(i), from_of(i), i->offset); break;
    case QUT_PROBE_CLASS_STX: x86_64_store(emit, bytes, to_of(i), i->offset, from_of(i)); break;
    case QUT_PROBE_CLASS_ST: x86_64_store_number(emit, bytes, to_of(i), i->offset, i->immediate); break;
    default: operation(emit, i); break;
    }
}

// ---- parts, and what stands behind them

static uint32_t bytes_most(const struct qut_probe_instruction *i)
{
    const uint8_t class = i->opcode & QUT_PROBE_CLASS_MASK, code = i->opcode & QUT_PROBE_CODE_MASK;
    const bool is_operation = class == QUT_PROBE_CLASS_ALU || class == QUT_PROBE_CLASS_ALU64;
    return is_operation && (code == QUT_PROBE_DIV || code == QUT_PROBE_MOD) ? DIVISION_BYTES_MAX : USUAL_BYTES_MAX;
}

static void align(struct emit *emit)
{
    while (emit->at % X86_64_ALIGNMENT)
        x86_64_byte(emit, 0xcc);
}

static void end_part(struct translation *translation)
{
    struct emit *emit = &translation->emit;
    align(emit);
    x86_64_number(emit, QUT_CALLS_ORIGIN_MARK ^ ((uint64_t)(uintptr_t)emit->to + emit->at), 8);
    x86_64_number(emit, (uint64_t)(uintptr_t)x86_64_call, 8);
    x86_64_byte(emit, emit->at - (uint32_t)offsetof(struct qut_calls_origin, code_bytes) - translation->part);
    for (unsigned i = offsetof(struct qut_calls_origin, moved_at); i < sizeof(struct qut_calls_origin); i++)
        x86_64_byte(emit, 0);
    translation->part = emit->at;
}

static void look(struct translation *translation, uint8_t *to)
{
    struct emit *emit = &translation->emit;
    *emit = (struct emit){.to = to};
    translation->part = 0;
    x86_64_number(emit, (uint64_t)(uintptr_t)x86_64_call, 8);
    align(emit);
    for (uint32_t i = 0; i < translation->count; i++) {
        const struct qut_probe_instruction *one = &translation->code[i];
        if (emit->at - translation->part + bytes_most(one) + PART_END_BYTES_MAX > PART_BYTES_MAX) {
            const uint32_t over = x86_64_jump_ahead(emit, SHORT_JUMP);
            end_part(translation);
            x86_64_land(emit, over);
        }
        translation->places[i] = emit->at;
        instruction(translation, i);
        if (one->opcode == QUT_PROBE_OP_WIDE)
            translation->places[++i] = emit->at;
    }
    end_part(translation);
}

uint32_t x86_64_translate(const struct qut_probe_instruction *code, uint32_t count,
                          uint32_t places[QUT_PROBE_INSTRUCTIONS_MAX], uint8_t *to)
{
    struct translation translation = {.code = code, .count = count, .places = places};
    look(&translation, NULL);
    if (to)
        look(&translation, to);
    return translation.emit.at;
}
