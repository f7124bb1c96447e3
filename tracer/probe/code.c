// SPDX-License-Identifier: Apache-2.0
// Instructions, lists of jumps, and the stack of the program that is being made. r6 keeps the address of the fields; r0
// is where values are made, r1 where the other one is; r1 to r5 are the helpers'.
#include "tracer/probe/inside.h"

enum { FIELDS_REGISTER = 6, STACK_WORDS = QUT_PROBE_STACK_BYTES / 8 };

bool probe_emit(struct probe_compiler *c, uint8_t opcode, unsigned to, unsigned from, int16_t offset, int32_t immediate)
{
    struct qut_probe_instruction *instruction = BASE_ADD(&c->code);
    if (!instruction)
        return probe_no_memory(c);
    *instruction = (struct qut_probe_instruction){opcode, (uint8_t)(to | from << 4), offset, immediate};
    if (c->code.count - c->first_instruction > QUT_PROBE_INSTRUCTIONS_MAX)
        return probe_fail(c, c->token.at, c->token.length, "this probe takes more than %d instructions",
                          QUT_PROBE_INSTRUCTIONS_MAX);
    return true;
}

static bool move(struct probe_compiler *c, unsigned to, unsigned from)
{
    return to == from || probe_emit(c, QUT_PROBE_CLASS_ALU64 | QUT_PROBE_MOV | QUT_PROBE_SOURCE_X, to, from, 0, 0);
}

bool probe_load_number(struct probe_compiler *c, unsigned to, int64_t number)
{
    if (number == (int32_t)number)
        return probe_emit(c, QUT_PROBE_CLASS_ALU64 | QUT_PROBE_MOV, to, 0, 0, (int32_t)number);
    const uint64_t bits = (uint64_t)number;
    return probe_emit(c, QUT_PROBE_OP_WIDE, to, 0, 0, (int32_t)(uint32_t)bits) &&
           probe_emit(c, 0, 0, 0, 0, (int32_t)(uint32_t)(bits >> 32));
}

// ---- the stack

bool probe_take_words(struct probe_compiler *c, uint32_t words, uint32_t at, uint32_t length, uint32_t *word)
{
    if (words > STACK_WORDS - c->stack_words)
        return probe_fail(c, at, length, "there is no room left for this: a probe has %d bytes", QUT_PROBE_STACK_BYTES);
    c->stack_words += words;
    *word = c->stack_words;
    return true;
}

void probe_give_words(struct probe_compiler *c, uint32_t words)
{
    c->stack_words -= words;
}

bool probe_stack_address(struct probe_compiler *c, unsigned to, uint32_t word)
{
    return move(c, to, QUT_PROBE_FRAME_REGISTER) &&
           probe_emit(c, QUT_PROBE_CLASS_ALU64 | QUT_PROBE_ADD, to, 0, 0, -8 * (int32_t)word);
}

static bool load_word(struct probe_compiler *c, unsigned to, unsigned from, int32_t offset)
{
    return probe_emit(c, QUT_PROBE_CLASS_LDX | QUT_PROBE_MODE_MEM | QUT_PROBE_SIZE_DW, to, from, (int16_t)offset, 0);
}

// ---- jumps

// Where a jump leads is, until it is known, where the one before it in its list stands.
bool probe_jump(struct probe_compiler *c, uint8_t opcode, unsigned a, unsigned b, int32_t immediate, int32_t *list)
{
    const int32_t here = (int32_t)(c->code.count - c->first_instruction);
    if (!probe_emit(c, opcode, a, b, (int16_t)*list, immediate))
        return false;
    *list = here;
    return true;
}

static struct qut_probe_instruction *jump_at(const struct probe_compiler *c, int32_t place)
{
    return &c->code.items[c->first_instruction + (uint32_t)place];
}

bool probe_land(struct probe_compiler *c, int32_t *list)
{
    const int32_t here = (int32_t)(c->code.count - c->first_instruction);
    for (int32_t at = *list, before; at != PROBE_NO_JUMP; at = before) {
        before = jump_at(c, at)->offset;
        jump_at(c, at)->offset = (int16_t)(here - at - 1);
    }
    *list = PROBE_NO_JUMP;
    return true;
}

int32_t probe_join(struct probe_compiler *c, int32_t list, int32_t other)
{
    int32_t last = list;
    if (list == PROBE_NO_JUMP)
        return other;
    while (jump_at(c, last)->offset != PROBE_NO_JUMP)
        last = jump_at(c, last)->offset;
    jump_at(c, last)->offset = (int16_t)other;
    return list;
}

// ---- values

static bool jump_of(struct probe_compiler *c, const struct probe_operand *o, bool is_inverted, int32_t *list)
{
    static const struct {
        uint8_t jump, inverse;
    } pairs[] = {{QUT_PROBE_JEQ, QUT_PROBE_JNE},   {QUT_PROBE_JNE, QUT_PROBE_JEQ},   {QUT_PROBE_JSGT, QUT_PROBE_JSLE},
                 {QUT_PROBE_JSLE, QUT_PROBE_JSGT}, {QUT_PROBE_JSGE, QUT_PROBE_JSLT}, {QUT_PROBE_JSLT, QUT_PROBE_JSGE}};
    uint8_t code = o->jump & QUT_PROBE_CODE_MASK;
    for (unsigned i = 0; is_inverted && i < sizeof pairs / sizeof *pairs; i++)
        if (pairs[i].jump == code) {
            code = pairs[i].inverse;
            break;
        }
    const bool is_register = o->jump & QUT_PROBE_SOURCE_X;
    return probe_jump(c, (uint8_t)(code | (o->jump & ~QUT_PROBE_CODE_MASK)), 0, is_register ? 1 : 0,
                      is_register ? 0 : (int32_t)o->number, list);
}

bool probe_to_truth(struct probe_compiler *c, struct probe_operand *operand)
{
    struct probe_operand truth = {.where = PROBE_TRUTH,
                                  .at = operand->at,
                                  .length = operand->length,
                                  .if_true = PROBE_NO_JUMP,
                                  .if_false = PROBE_NO_JUMP};
    if (operand->where == PROBE_TRUTH)
        return true;
    if (operand->where != PROBE_CONDITION) {
        if (!probe_load(c, 0, operand))
            return false;
        operand->jump = QUT_PROBE_CLASS_JMP | QUT_PROBE_JNE;
        operand->number = 0;
    }
    const bool done = jump_of(c, operand, true, &truth.if_false);
    *operand = truth;
    return done;
}

static bool load_truth(struct probe_compiler *c, unsigned to, const struct probe_operand *truth)
{
    int32_t if_true = truth->if_true, if_false = truth->if_false, end = PROBE_NO_JUMP;
    return probe_land(c, &if_true) && probe_load_number(c, to, 1) && probe_jump(c, QUT_PROBE_OP_JA, 0, 0, 0, &end) &&
           probe_land(c, &if_false) && probe_load_number(c, to, 0) && probe_land(c, &end);
}

bool probe_load(struct probe_compiler *c, unsigned to, const struct probe_operand *operand)
{
    struct probe_operand truth = *operand;
    switch (operand->where) {
    case PROBE_CONSTANT: return probe_load_number(c, to, operand->number);
    case PROBE_FIELD:
        c->programs.items[c->programs.count - 1].fields |= UINT32_C(1) << operand->number;
        return load_word(c, to, FIELDS_REGISTER, 8 * (int32_t)operand->number);
    case PROBE_IN_R0: return move(c, to, 0);
    case PROBE_ON_STACK: return load_word(c, to, QUT_PROBE_FRAME_REGISTER, -8 * (int32_t)operand->word);
    case PROBE_CONDITION:
    case PROBE_TRUTH: return probe_to_truth(c, &truth) && load_truth(c, to, &truth);
    case PROBE_LITERAL: break;
    }
    return probe_fail(c, operand->at, operand->length, "a text where a number must be");
}

bool probe_spill(struct probe_compiler *c, struct probe_operand *operand)
{
    if (!probe_load(c, 0, operand) || !probe_take_words(c, 1, operand->at, operand->length, &operand->word))
        return false;
    operand->where = PROBE_ON_STACK;
    operand->words = 1;
    return probe_emit(c, QUT_PROBE_CLASS_STX | QUT_PROBE_MODE_MEM | QUT_PROBE_SIZE_DW, QUT_PROBE_FRAME_REGISTER, 0,
                      (int16_t)(-8 * (int32_t)operand->word), 0);
}

bool probe_call(struct probe_compiler *c, enum qut_probe_helper helper)
{
    return probe_emit(c, QUT_PROBE_OP_CALL, 0, 0, 0, (int32_t)helper);
}
