// SPDX-License-Identifier: Apache-2.0
// One look at each instruction, in order: since all jumps go forwards, every way to an instruction is known when it is
// looked at. Where ways meet, what is not the same on all of them is not known any more.
#include "bytecode/inside.h"

struct look { // at one program
    const struct qut_probe_image *image;
    const struct qut_probe_program *program;
    const struct qut_probe_instruction *code;
    uint32_t count, at;
    struct bytecode_state *states;
    struct bytecode_state now; // at `at`, and then behind it
};

static bool is_number(const struct bytecode_value *value)
{
    return value->kind == NUMBER || value->kind == CONSTANT;
}

static void set(struct look *look, unsigned index, enum kind kind, int32_t number)
{
    look->now.registers[index] = (struct bytecode_value){.kind = (uint8_t)kind, .number = number};
}

// ---- where ways meet

static void meet_value(struct bytecode_value *value, const struct bytecode_value *other)
{
    if (value->kind == other->kind && value->number == other->number)
        return;
    *value = (struct bytecode_value){.kind = is_number(value) && is_number(other) ? NUMBER : UNSET};
}

// What is known now is so at `to`, too.
static enum bytecode_refusal leads_to(struct look *look, uint64_t to)
{
    if (to >= look->count)
        return BYTECODE_FALLS_OUT;
    struct bytecode_state *state = &look->states[to];
    if (state->is_second)
        return BYTECODE_OUTSIDE;
    if (!state->is_reached) {
        *state = look->now;
        state->is_reached = 1;
        return BYTECODE_OK;
    }
    for (unsigned i = 0; i < QUT_PROBE_REGISTERS; i++)
        meet_value(&state->registers[i], &look->now.registers[i]);
    state->written &= look->now.written;
    return BYTECODE_OK;
}

static enum bytecode_refusal jumps_to(struct look *look, int16_t offset)
{
    if (offset < 0)
        return BYTECODE_BACKWARDS;
    const uint64_t to = look->at + 1 + (uint64_t)offset;
    return to >= look->count ? BYTECODE_OUTSIDE : leads_to(look, to);
}

// ---- registers

static enum bytecode_refusal needs_number(const struct look *look, unsigned index)
{
    if (index >= QUT_PROBE_REGISTERS)
        return BYTECODE_REGISTER;
    const struct bytecode_value *value = &look->now.registers[index];
    if (value->kind == UNSET)
        return BYTECODE_UNSET;
    return is_number(value) ? BYTECODE_OK : BYTECODE_POINTER;
}

static enum bytecode_refusal may_be_set(unsigned index)
{
    return index < QUT_PROBE_FRAME_REGISTER ? BYTECODE_OK : BYTECODE_REGISTER;
}

// The other operand of an operation or a condition. Nothing is in the place of the one that it is not.
static enum bytecode_refusal needs_operand(const struct look *look, const struct qut_probe_instruction *i)
{
    if (i->opcode & QUT_PROBE_SOURCE_X)
        return i->immediate ? BYTECODE_RESERVED : needs_number(look, qut_probe_source(i));
    return qut_probe_source(i) ? BYTECODE_RESERVED : BYTECODE_OK;
}

// ---- operations

static enum bytecode_refusal move(struct look *look, const struct qut_probe_instruction *i)
{
    const bool is_64 = (i->opcode & QUT_PROBE_CLASS_MASK) == QUT_PROBE_CLASS_ALU64;
    const unsigned to = qut_probe_destination(i), from = qut_probe_source(i);
    if (!(i->opcode & QUT_PROBE_SOURCE_X)) {
        if (i->offset || from)
            return BYTECODE_RESERVED;
        set(look, to, is_64 || i->immediate >= 0 ? CONSTANT : NUMBER, is_64 || i->immediate >= 0 ? i->immediate : 0);
        return BYTECODE_OK;
    }
    if (i->immediate || (i->offset && i->offset != 8 && i->offset != 16 && !(i->offset == 32 && is_64)))
        return BYTECODE_RESERVED;
    if (is_64 && i->offset == 0) { // a pointer may be moved
        if (from >= QUT_PROBE_REGISTERS)
            return BYTECODE_REGISTER;
        if (look->now.registers[from].kind == UNSET)
            return BYTECODE_UNSET;
        look->now.registers[to] = look->now.registers[from];
        return BYTECODE_OK;
    }
    const enum bytecode_refusal refusal = needs_number(look, from);
    set(look, to, NUMBER, 0);
    return refusal;
}

// An address within the stack, or at its end, plus or minus a constant is another one.
static enum bytecode_refusal move_stack_pointer(struct look *look, const struct qut_probe_instruction *i)
{
    struct bytecode_value *value = &look->now.registers[qut_probe_destination(i)];
    const uint8_t code = i->opcode & QUT_PROBE_CODE_MASK;
    if ((i->opcode & QUT_PROBE_SOURCE_X) || (code != QUT_PROBE_ADD && code != QUT_PROBE_SUB))
        return BYTECODE_POINTER;
    if (qut_probe_source(i) || i->offset)
        return BYTECODE_RESERVED;
    const int64_t to = value->number + (code == QUT_PROBE_ADD ? (int64_t)i->immediate : -(int64_t)i->immediate);
    if (to < -QUT_PROBE_STACK_BYTES || to > 0)
        return BYTECODE_STACK;
    value->number = (int32_t)to;
    return BYTECODE_OK;
}

static enum bytecode_refusal operation(struct look *look, const struct qut_probe_instruction *i)
{
    const uint8_t code = i->opcode & QUT_PROBE_CODE_MASK;
    const bool is_64 = (i->opcode & QUT_PROBE_CLASS_MASK) == QUT_PROBE_CLASS_ALU64;
    const unsigned to = qut_probe_destination(i);
    enum bytecode_refusal refusal = code > QUT_PROBE_ARSH ? BYTECODE_OPCODE : may_be_set(to);
    if (refusal != BYTECODE_OK)
        return refusal;
    if (code == QUT_PROBE_MOV)
        return move(look, i);
    if (is_64 && look->now.registers[to].kind == STACK)
        return move_stack_pointer(look, i);
    refusal = needs_number(look, to);
    if (refusal == BYTECODE_OK && code == QUT_PROBE_NEG)
        refusal = i->opcode & QUT_PROBE_SOURCE_X        ? BYTECODE_OPCODE
                  : qut_probe_source(i) || i->immediate ? BYTECODE_RESERVED
                                                        : BYTECODE_OK;
    else if (refusal == BYTECODE_OK)
        refusal = needs_operand(look, i);
    const bool may_be_signed = code == QUT_PROBE_DIV || code == QUT_PROBE_MOD;
    if (refusal == BYTECODE_OK && i->offset && !(may_be_signed && i->offset == 1))
        refusal = BYTECODE_RESERVED;
    set(look, to, NUMBER, 0);
    return refusal;
}

// ---- memory

static uint64_t words_at(int64_t at, uint32_t words)
{
    const uint64_t all = words >= 64 ? ~UINT64_C(0) : (UINT64_C(1) << words) - 1;
    return all << ((at + QUT_PROBE_STACK_BYTES) / 8);
}

// Whether so many bytes at an address, from the stack's end, are of the stack.
static enum bytecode_refusal stack_place(int64_t at, uint32_t bytes, uint32_t alignment)
{
    if (at < -QUT_PROBE_STACK_BYTES || at + (int64_t)bytes > 0)
        return BYTECODE_STACK;
    return at % (int64_t)alignment ? BYTECODE_ALIGNMENT : BYTECODE_OK;
}

static enum bytecode_refusal load(struct look *look, const struct qut_probe_instruction *i)
{
    const unsigned to = qut_probe_destination(i), from = qut_probe_source(i);
    const unsigned bytes = qut_probe_access_bytes(i->opcode);
    enum bytecode_refusal refusal = may_be_set(to);
    if ((i->opcode & QUT_PROBE_MODE_MASK) != QUT_PROBE_MODE_MEM)
        return BYTECODE_OPCODE;
    if (refusal != BYTECODE_OK || from >= QUT_PROBE_REGISTERS)
        return BYTECODE_REGISTER;
    if (i->immediate)
        return BYTECODE_RESERVED;
    const struct bytecode_value *address = &look->now.registers[from];
    const int64_t at = (int64_t)address->number + i->offset;
    if (address->kind == UNSET)
        return BYTECODE_UNSET;
    if (is_number(address))
        return BYTECODE_NUMBER;
    if (address->kind == FIELDS) {
        if (bytes != 8 || at < 0 || at % 8 || at / 8 >= QUT_PROBE_FIELD_END || !(look->program->fields >> (at / 8) & 1))
            return BYTECODE_FIELD;
    } else {
        refusal = stack_place(at, bytes, bytes);
        if (refusal != BYTECODE_OK)
            return refusal;
        if ((look->now.written & words_at(at, 1)) == 0)
            return BYTECODE_UNWRITTEN;
    }
    set(look, to, NUMBER, 0);
    return BYTECODE_OK;
}

// A part of a word is written only where the whole has been: then a word is written or it is not.
static enum bytecode_refusal store(struct look *look, const struct qut_probe_instruction *i)
{
    const unsigned to = qut_probe_destination(i), bytes = qut_probe_access_bytes(i->opcode);
    const bool is_register = (i->opcode & QUT_PROBE_CLASS_MASK) == QUT_PROBE_CLASS_STX;
    if ((i->opcode & QUT_PROBE_MODE_MASK) != QUT_PROBE_MODE_MEM)
        return BYTECODE_OPCODE;
    if (to >= QUT_PROBE_REGISTERS)
        return BYTECODE_REGISTER;
    if (is_register ? i->immediate != 0 : qut_probe_source(i) != 0)
        return BYTECODE_RESERVED;
    enum bytecode_refusal refusal = is_register ? needs_number(look, qut_probe_source(i)) : BYTECODE_OK;
    const struct bytecode_value *address = &look->now.registers[to];
    const int64_t at = (int64_t)address->number + i->offset;
    if (refusal != BYTECODE_OK)
        return refusal;
    if (address->kind == UNSET)
        return BYTECODE_UNSET;
    if (address->kind != STACK)
        return is_number(address) ? BYTECODE_NUMBER : BYTECODE_POINTER;
    refusal = stack_place(at, bytes, bytes);
    if (refusal != BYTECODE_OK)
        return refusal;
    if (bytes < 8 && (look->now.written & words_at(at, 1)) == 0)
        return BYTECODE_UNWRITTEN;
    look->now.written |= words_at(at, 1);
    return BYTECODE_OK;
}

// ---- helpers

static enum bytecode_refusal constant_argument(const struct look *look, unsigned index, int32_t least, int64_t most)
{
    const struct bytecode_value *value = &look->now.registers[index];
    if (value->kind != CONSTANT || value->number < least || value->number > most)
        return value->kind == UNSET ? BYTECODE_UNSET : BYTECODE_ARGUMENT;
    return BYTECODE_OK;
}

// So many words at what a register points to; they have to be written, or will be.
static enum bytecode_refusal words_argument(struct look *look, unsigned index, uint32_t words, bool are_read)
{
    const struct bytecode_value *value = &look->now.registers[index];
    if (words == 0)
        return BYTECODE_OK;
    if (value->kind != STACK)
        return value->kind == UNSET ? BYTECODE_UNSET : BYTECODE_NUMBER;
    const enum bytecode_refusal refusal = stack_place(value->number, 8 * words, 8);
    if (refusal != BYTECODE_OK)
        return refusal;
    const uint64_t bits = words_at(value->number, words);
    if (are_read && (look->now.written & bits) != bits)
        return BYTECODE_UNWRITTEN;
    look->now.written |= bits;
    return BYTECODE_OK;
}

static enum bytecode_refusal read_arguments(struct look *look)
{
    enum bytecode_refusal refusal = constant_argument(look, 2, 1, QUT_PROBE_READ_BYTES_MAX);
    if (refusal == BYTECODE_OK)
        refusal = needs_number(look, 3);
    if (refusal == BYTECODE_OK)
        refusal = words_argument(look, 1, ((uint32_t)look->now.registers[2].number + 7) / 8, false);
    return refusal;
}

static enum bytecode_refusal map_arguments(struct look *look, uint32_t helper)
{
    enum bytecode_refusal refusal = constant_argument(look, 1, 0, (int64_t)look->image->header->map_count - 1);
    if (refusal != BYTECODE_OK)
        return refusal;
    const struct qut_probe_map *map = &look->image->maps[look->now.registers[1].number];
    if (helper == QUT_PROBE_PRINT || helper == QUT_PROBE_CLEAR)
        return BYTECODE_OK;
    if (helper == QUT_PROBE_LOOKUP && map->kind != QUT_PROBE_VALUE)
        return BYTECODE_ARGUMENT;
    if (helper == QUT_PROBE_AGGREGATE)
        refusal = needs_number(look, 3);
    return refusal == BYTECODE_OK ? words_argument(look, 2, map->key_words, true) : refusal;
}

static enum bytecode_refusal record_arguments(struct look *look)
{
    const enum bytecode_refusal refusal = constant_argument(look, 1, 0, (int64_t)look->image->header->record_count - 1);
    if (refusal != BYTECODE_OK)
        return refusal;
    return words_argument(look, 2, look->image->records[look->now.registers[1].number].words, true);
}

static enum bytecode_refusal call(struct look *look, const struct qut_probe_instruction *i)
{
    const uint32_t helper = (uint32_t)i->immediate;
    if (i->registers || i->offset)
        return BYTECODE_RESERVED;
    if (!qut_probe_has_helper((enum qut_probe_kind)look->program->kind, helper))
        return BYTECODE_HELPER;
    enum bytecode_refusal refusal;
    if (qut_probe_fills(helper))
        refusal = read_arguments(look);
    else if (helper == QUT_PROBE_EMIT)
        refusal = record_arguments(look);
    else if (helper == QUT_PROBE_STACK)
        refusal = constant_argument(look, 1, 1, QUT_PROBE_STACK_FRAMES_MAX);
    else
        refusal = map_arguments(look, helper);
    set(look, 0, NUMBER, 0);
    for (unsigned n = 1; n <= 5; n++)
        set(look, n, UNSET, 0);
    return refusal;
}

// ---- jumps

static enum bytecode_refusal jump(struct look *look, const struct qut_probe_instruction *i)
{
    const uint8_t code = i->opcode & QUT_PROBE_CODE_MASK;
    const bool is_64 = (i->opcode & QUT_PROBE_CLASS_MASK) == QUT_PROBE_CLASS_JMP;
    if (code == QUT_PROBE_CALL || code == QUT_PROBE_EXIT || code == QUT_PROBE_JA) {
        if (!is_64 || (i->opcode & QUT_PROBE_SOURCE_X))
            return BYTECODE_OPCODE;
        if (code == QUT_PROBE_CALL) {
            const enum bytecode_refusal refusal = call(look, i);
            return refusal == BYTECODE_OK ? leads_to(look, look->at + 1) : refusal;
        }
        if (i->registers || i->immediate || (code == QUT_PROBE_EXIT && i->offset))
            return BYTECODE_RESERVED;
        return code == QUT_PROBE_EXIT ? needs_number(look, 0) : jumps_to(look, i->offset);
    }
    if (code > QUT_PROBE_JSLE)
        return BYTECODE_OPCODE;
    enum bytecode_refusal refusal = needs_number(look, qut_probe_destination(i));
    if (refusal == BYTECODE_OK)
        refusal = needs_operand(look, i);
    if (refusal == BYTECODE_OK)
        refusal = jumps_to(look, i->offset);
    return refusal == BYTECODE_OK ? leads_to(look, look->at + 1) : refusal;
}

// The number's upper half is where the next instruction would be.
static enum bytecode_refusal wide(struct look *look, const struct qut_probe_instruction *i)
{
    const enum bytecode_refusal refusal = may_be_set(qut_probe_destination(i));
    if (i->opcode != QUT_PROBE_OP_WIDE)
        return BYTECODE_OPCODE;
    if (refusal != BYTECODE_OK)
        return refusal;
    if (qut_probe_source(i) || i->offset)
        return BYTECODE_RESERVED;
    if (look->at + 1 >= look->count)
        return BYTECODE_FALLS_OUT;
    const struct qut_probe_instruction *second = i + 1;
    if (second->opcode || second->registers || second->offset)
        return BYTECODE_RESERVED;
    if (look->states[look->at + 1].is_reached) // something has jumped there
        return BYTECODE_OUTSIDE;
    look->states[look->at + 1].is_second = 1;
    const bool fits = second->immediate == (i->immediate < 0 ? -1 : 0); // what a move could have brought
    set(look, qut_probe_destination(i), fits ? CONSTANT : NUMBER, fits ? i->immediate : 0);
    return leads_to(look, look->at + 2);
}

static enum bytecode_refusal instruction(struct look *look)
{
    const struct qut_probe_instruction *i = &look->code[look->at];
    const struct bytecode_state *state = &look->states[look->at];
    enum bytecode_refusal refusal;
    if (state->is_second)
        return BYTECODE_OK;
    if (!state->is_reached)
        return BYTECODE_UNREACHED;
    look->now = *state;
    switch (i->opcode & QUT_PROBE_CLASS_MASK) {
    case QUT_PROBE_CLASS_JMP:
    case QUT_PROBE_CLASS_JMP32: return jump(look, i);
    case QUT_PROBE_CLASS_LD: return wide(look, i);
    case QUT_PROBE_CLASS_LDX: refusal = load(look, i); break;
    case QUT_PROBE_CLASS_ST:
    case QUT_PROBE_CLASS_STX: refusal = store(look, i); break;
    default: refusal = operation(look, i); break;
    }
    return refusal == BYTECODE_OK ? leads_to(look, look->at + 1) : refusal;
}

static bool go_through(struct look *look, struct bytecode_fault *fault)
{
    for (uint32_t i = 0; i < look->count; i++)
        look->states[i].is_reached = look->states[i].is_second = 0;
    struct bytecode_state *first = &look->states[0];
    for (unsigned i = 0; i < QUT_PROBE_REGISTERS; i++)
        first->registers[i] = (struct bytecode_value){.kind = UNSET};
    first->registers[1].kind = FIELDS;
    first->registers[QUT_PROBE_FRAME_REGISTER].kind = STACK;
    first->written = 0;
    first->is_reached = 1;
    for (look->at = 0; look->at < look->count; look->at++) {
        fault->instruction = look->at;
        fault->refusal = instruction(look);
        if (fault->refusal != BYTECODE_OK)
            return false;
    }
    return true;
}

bool bytecode_verify_program(const struct qut_probe_image *image, uint32_t number, struct bytecode_workspace *workspace,
                             struct bytecode_fault *fault)
{
    const struct qut_probe_program *program = &image->programs[number];
    struct look look = {.image = image,
                        .program = program,
                        .code = image->instructions + program->first_instruction,
                        .count = program->instruction_count,
                        .states = workspace->states};
    fault->program = number;
    return go_through(&look, fault);
}
