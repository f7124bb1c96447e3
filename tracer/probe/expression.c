// SPDX-License-Identifier: Apache-2.0
// Expressions: operators by how strongly they bind. Numbers are signed and have 64 bits.
#include <stdlib.h>
#include <string.h>

#include "tracer/probe/inside.h"
#include "tracer/probe/values.h"

enum { DEPTH_MAX = 64, ALU64 = QUT_PROBE_CLASS_ALU64, JMP = QUT_PROBE_CLASS_JMP };

enum level { OR = 1, AND, BIT_OR, BIT_XOR, BIT_AND, EQUAL, ORDER, SHIFT, SUM, PRODUCT };

static const struct sign {
    char text[3];
    uint8_t level;
    uint8_t opcode, offset; // of ALU64, or a jump's of JMP
} signs[] = {
    {"||", OR, 0, 0},
    {"&&", AND, 0, 0},
    {"|", BIT_OR, ALU64 | QUT_PROBE_OR, 0},
    {"^", BIT_XOR, ALU64 | QUT_PROBE_XOR, 0},
    {"&", BIT_AND, ALU64 | QUT_PROBE_AND, 0},
    {"==", EQUAL, JMP | QUT_PROBE_JEQ, 0},
    {"!=", EQUAL, JMP | QUT_PROBE_JNE, 0},
    {"<", ORDER, JMP | QUT_PROBE_JSLT, 0},
    {"<=", ORDER, JMP | QUT_PROBE_JSLE, 0},
    {">", ORDER, JMP | QUT_PROBE_JSGT, 0},
    {">=", ORDER, JMP | QUT_PROBE_JSGE, 0},
    {"<<", SHIFT, ALU64 | QUT_PROBE_LSH, 0},
    {">>", SHIFT, ALU64 | QUT_PROBE_ARSH, 0},
    {"+", SUM, ALU64 | QUT_PROBE_ADD, 0},
    {"-", SUM, ALU64 | QUT_PROBE_SUB, 0},
    {"*", PRODUCT, ALU64 | QUT_PROBE_MUL, 0},
    {"/", PRODUCT, ALU64 | QUT_PROBE_DIV, 1},
    {"%", PRODUCT, ALU64 | QUT_PROBE_MOD, 1},
};

static const struct sign *sign_of(const struct probe_compiler *c)
{
    if (c->is_slash_an_end && probe_is_sign(c, "/"))
        return NULL;
    for (size_t i = 0; i < sizeof signs / sizeof *signs; i++)
        if (probe_is_sign(c, signs[i].text))
            return &signs[i];
    return NULL;
}

bool probe_needs_integer(struct probe_compiler *c, const struct probe_operand *o)
{
    return o->type == PROBE_INTEGER ||
           probe_fail(c, o->at, o->length, "a %s where a number must be", o->type == PROBE_TEXT ? "text" : "stack");
}

static void spans(struct probe_operand *o, const struct probe_operand *from, const struct probe_operand *to)
{
    o->length = to->at + to->length - from->at;
    o->at = from->at;
}

// ---- two operands

static bool fold(const struct sign *sign, int64_t a, int64_t b, int64_t *result)
{
    const uint64_t x = (uint64_t)a, y = (uint64_t)b;
    if (!(sign->opcode & 2)) // a jump: class 5; ALU64 is 7
        return false;
    switch (sign->opcode & QUT_PROBE_CODE_MASK) {
    case QUT_PROBE_ADD: *result = (int64_t)(x + y); return true;
    case QUT_PROBE_SUB: *result = (int64_t)(x - y); return true;
    case QUT_PROBE_MUL: *result = (int64_t)(x * y); return true;
    case QUT_PROBE_OR: *result = a | b; return true;
    case QUT_PROBE_AND: *result = a & b; return true;
    case QUT_PROBE_XOR: *result = a ^ b; return true;
    case QUT_PROBE_LSH: *result = (int64_t)(x << (y & 63)); return true;
    default: return false;
    }
}

static bool combine(struct probe_compiler *c, const struct sign *sign, struct probe_operand *a,
                    const struct probe_operand *b, bool is_spilled)
{
    const bool is_jump = (sign->opcode & QUT_PROBE_CLASS_MASK) == JMP;
    const bool is_short = b->where == PROBE_CONSTANT && b->number == (int32_t)b->number;
    struct probe_operand result = {.where = is_jump ? PROBE_CONDITION : PROBE_IN_R0};
    if (!is_short && !probe_load(c, 1, b))
        return false;
    if (!probe_load(c, 0, a))
        return false;
    if (is_spilled)
        probe_give_words(c, 1);
    const uint8_t opcode = sign->opcode | (is_short ? 0 : QUT_PROBE_SOURCE_X);
    if (is_jump) {
        result.jump = opcode;
        result.number = is_short ? b->number : 0;
    } else if (!probe_emit(c, opcode, 0, is_short ? 0 : 1, sign->offset, is_short ? (int32_t)b->number : 0)) {
        return false;
    }
    spans(&result, a, b);
    *a = result;
    return true;
}

static bool invert(struct probe_compiler *c, struct probe_operand *truth)
{
    int32_t if_true = truth->if_true;
    if (!probe_jump(c, QUT_PROBE_OP_JA, 0, 0, 0, &if_true) || !probe_land(c, &truth->if_false))
        return false;
    truth->if_false = if_true;
    truth->if_true = PROBE_NO_JUMP;
    return true;
}

static bool binary(struct probe_compiler *c, unsigned least, struct probe_operand *a);

static bool and_or(struct probe_compiler *c, const struct sign *sign, struct probe_operand *a)
{
    struct probe_operand b;
    if (!probe_needs_integer(c, a) || !probe_to_truth(c, a))
        return false;
    if (sign->level == OR && !invert(c, a)) // then the code goes on here where it is false
        return false;
    if (!probe_land(c, &a->if_true) || !binary(c, sign->level + 1u, &b) || !probe_needs_integer(c, &b) ||
        !probe_to_truth(c, &b))
        return false;
    if (sign->level == OR)
        a->if_true = probe_join(c, a->if_false, b.if_true), a->if_false = b.if_false;
    else
        a->if_false = probe_join(c, a->if_false, b.if_false), a->if_true = b.if_true;
    spans(a, a, &b);
    return true;
}

static bool is_text(const struct probe_operand *o)
{
    return o->type == PROBE_TEXT;
}

static bool binary(struct probe_compiler *c, unsigned least, struct probe_operand *a)
{
    if (!probe_unary(c, a))
        return false;
    for (const struct sign *sign; (sign = sign_of(c)) && sign->level >= least;) {
        struct probe_operand b;
        if (!probe_next(c))
            return false;
        if (sign->level <= AND) {
            if (!and_or(c, sign, a))
                return false;
            continue;
        }
        const bool is_spilled = !is_text(a) && a->where != PROBE_CONSTANT && a->where != PROBE_FIELD;
        if ((is_spilled && !probe_spill(c, a)) || !binary(c, sign->level + 1u, &b))
            return false;
        if (is_text(a) || is_text(&b)) {
            if (!probe_compare_texts(c, a, &b, sign->text))
                return false;
            continue;
        }
        if ((a->type == PROBE_STACK || b.type == PROBE_STACK) && sign->level != EQUAL)
            return probe_fail(c, a->at, b.at + b.length - a->at, "stacks are compared by == and != only");
        int64_t folded;
        if (a->where == PROBE_CONSTANT && b.where == PROBE_CONSTANT && fold(sign, a->number, b.number, &folded)) {
            spans(a, a, &b);
            a->number = folded;
        } else if (!combine(c, sign, a, &b, is_spilled)) {
            return false;
        }
    }
    return true;
}

// ---- a ? b : c

static bool choose(struct probe_compiler *c, struct probe_operand *a)
{
    struct probe_operand one, other;
    int32_t end = PROBE_NO_JUMP;
    if (!probe_needs_integer(c, a) || !probe_to_truth(c, a) || !probe_next(c) || !probe_land(c, &a->if_true) ||
        !probe_integer(c, &one) || !probe_load(c, 0, &one) || !probe_jump(c, QUT_PROBE_OP_JA, 0, 0, 0, &end) ||
        !probe_take_sign(c, ":") || !probe_land(c, &a->if_false) || !probe_integer(c, &other) ||
        !probe_load(c, 0, &other) || !probe_land(c, &end))
        return false;
    struct probe_operand result = {.where = PROBE_IN_R0};
    spans(&result, a, &other);
    *a = result;
    return true;
}

bool probe_expression(struct probe_compiler *c, struct probe_operand *result)
{
    if (++c->depth > DEPTH_MAX)
        return probe_fail(c, c->token.at, c->token.length, "too much lies in each other here");
    if (!binary(c, OR, result) || (probe_is_sign(c, "?") && !choose(c, result)))
        return false;
    c->depth--;
    return true;
}

bool probe_integer(struct probe_compiler *c, struct probe_operand *result)
{
    return probe_expression(c, result) && probe_needs_integer(c, result);
}

bool probe_constant(struct probe_compiler *c, int64_t *number, const char *what)
{
    struct probe_operand o;
    if (!probe_expression(c, &o))
        return false;
    *number = o.number;
    return o.where == PROBE_CONSTANT || probe_fail(c, o.at, o.length, "%s must be a constant", what);
}

bool probe_not(struct probe_compiler *c, struct probe_operand *o)
{
    return probe_needs_integer(c, o) && probe_to_truth(c, o) && invert(c, o);
}

bool probe_negate(struct probe_compiler *c, struct probe_operand *o, bool is_complement)
{
    if (!probe_needs_integer(c, o))
        return false;
    if (o->where == PROBE_CONSTANT) {
        o->number = is_complement ? ~o->number : (int64_t)(0 - (uint64_t)o->number);
        return true;
    }
    const bool done = probe_load(c, 0, o) && (is_complement ? probe_emit(c, ALU64 | QUT_PROBE_XOR, 0, 0, 0, -1)
                                                            : probe_emit(c, ALU64 | QUT_PROBE_NEG, 0, 0, 0, 0));
    o->where = PROBE_IN_R0;
    return done;
}
