// SPDX-License-Identifier: Apache-2.0
#include "tracer/probe/values.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tracer/probe/builtin.h"

enum { TEXT_BYTES = 64, WORD_BYTES = 8, UNARY_MAX = 64 };

// ---- fields

static const struct field {
    const char *name;
    enum qut_probe_field field;
} fields[] = {{"arg0", QUT_PROBE_ARG0},     {"arg1", QUT_PROBE_ARG0 + 1},     {"arg2", QUT_PROBE_ARG0 + 2},
              {"arg3", QUT_PROBE_ARG0 + 3}, {"arg4", QUT_PROBE_ARG0 + 4},     {"arg5", QUT_PROBE_ARG5},
              {"retval", QUT_PROBE_RETVAL}, {"duration", QUT_PROBE_DURATION}, {"time", QUT_PROBE_TIME},
              {"tid", QUT_PROBE_TID},       {"pid", QUT_PROBE_PID},           {"errno", QUT_PROBE_ERRNO},
              {"random", QUT_PROBE_RANDOM}};

static const struct number_at { // in the program's memory
    const char *name;
    uint8_t bytes, size; // size: of an opcode
    bool is_signed;
} numbers_at[] = {{"u8", 1, QUT_PROBE_SIZE_B, false},  {"u16", 2, QUT_PROBE_SIZE_H, false},
                  {"u32", 4, QUT_PROBE_SIZE_W, false}, {"u64", 8, QUT_PROBE_SIZE_DW, false},
                  {"s8", 1, QUT_PROBE_SIZE_B, true},   {"s16", 2, QUT_PROBE_SIZE_H, true},
                  {"s32", 4, QUT_PROBE_SIZE_W, true},  {"s64", 8, QUT_PROBE_SIZE_DW, false}};

enum { FIELDS = sizeof fields / sizeof *fields, NUMBERS = sizeof numbers_at / sizeof *numbers_at };

const char *probe_field_name(uint32_t field)
{
    for (size_t i = 0; i < FIELDS; i++)
        if (fields[i].field == field)
            return fields[i].name;
    return "?";
}

static bool unknown_name(struct probe_compiler *c, const struct probe_token *token)
{
    const char *words[FIELDS + NUMBERS + 4 + PROBE_BUILTIN_VALUES + PROBE_AGGREGATIONS],
        *aggregations[PROBE_AGGREGATIONS];
    size_t count = 0;
    probe_aggregation_names(aggregations);
    for (size_t i = 0; i < PROBE_AGGREGATIONS; i++)
        if (probe_is_name(c, aggregations[i]))
            return probe_fail(c, token->at, token->length, "%s stands alone behind \"=\": it is no value",
                              aggregations[i]);
    if (c->next + 1 < c->length && c->text[c->next] == '-' && c->text[c->next + 1] == '>') {
        static const char *const with_members[] = {"args", "retval"};
        const struct probe_hint hint = probe_hint(c, token, with_members, 2);
        return probe_fail(c, token->at, token->length, "no value with members has this name%s", hint.text);
    }
    for (size_t i = 0; i < FIELDS; i++)
        words[count++] = fields[i].name;
    for (size_t i = 0; i < NUMBERS; i++)
        words[count++] = numbers_at[i].name;
    words[count++] = "str";
    words[count++] = "path";
    words[count++] = "args";
    words[count++] = "stack";
    for (enum probe_builtin_value i = 0; i < PROBE_BUILTIN_VALUES; i++)
        words[count++] = probe_builtin_value_name(i);
    for (size_t i = 0; token->at == c->assigned_at && i < PROBE_AGGREGATIONS; i++)
        words[count++] = aggregations[i];
    const struct probe_hint hint = probe_hint(c, token, words, count);
    return probe_fail(c, token->at, token->length, "no value has this name%s", hint.text);
}

static bool take_field(struct probe_compiler *c, const struct field *field, struct probe_operand *o)
{
    const uint32_t bit = UINT32_C(1) << field->field;
    if (!(qut_probe_fields_of(c->kind) & bit))
        return probe_fail(c, o->at, o->length, "%s is known in \"%s\" only", field->name,
                          qut_probe_fields_of(QUT_PROBE_ENTRY) & bit
                              ? qut_probe_fields_of(QUT_PROBE_RETURN) & bit ? "entry and return" : "entry and offset"
                          : qut_probe_fields_of(QUT_PROBE_UNWIND) & bit ? "return and unwind"
                                                                        : "return");
    o->where = PROBE_FIELD;
    o->number = field->field;
    return probe_next(c) &&
           (field->field != QUT_PROBE_RETVAL || !probe_is_result_path(c) || probe_argument(c, o, true));
}

// ---- what is read of the program's memory

static bool needs_inside(struct probe_compiler *c, const struct probe_token *name)
{
    return qut_probe_is_inside(c->kind) ||
           probe_fail(c, name->at, name->length, "the program is looked at in \"entry\" and \"return\" only");
}

static bool take_address(struct probe_compiler *c, const struct probe_token *name, struct probe_operand *address)
{
    return needs_inside(c, name) && probe_next(c) && probe_take_sign(c, "(") && probe_integer(c, address) &&
           probe_load(c, 3, address);
}

static bool read_number(struct probe_compiler *c, const struct number_at *number, struct probe_operand *o)
{
    const struct probe_token name = c->token;
    struct probe_operand address;
    uint32_t word;
    if (!take_address(c, &name, &address) || !probe_take_sign(c, ")") ||
        !probe_take_words(c, 1, name.at, name.length, &word) || !probe_stack_address(c, 1, word) ||
        !probe_load_number(c, 2, number->bytes) || !probe_call(c, QUT_PROBE_READ) ||
        !probe_emit(c, QUT_PROBE_CLASS_LDX | QUT_PROBE_MODE_MEM | number->size, 0, QUT_PROBE_FRAME_REGISTER,
                    (int16_t)(-WORD_BYTES * (int)word), 0))
        return false;
    probe_give_words(c, 1);
    o->where = PROBE_IN_R0;
    return !number->is_signed || probe_emit(c, QUT_PROBE_CLASS_ALU64 | QUT_PROBE_MOV | QUT_PROBE_SOURCE_X, 0, 0,
                                            (int16_t)(8 * number->bytes), 0);
}

// The text at an address, or what a descriptor is.
static bool read_text(struct probe_compiler *c, enum qut_probe_helper helper, struct probe_operand *o)
{
    const struct probe_token name = c->token;
    struct probe_operand address;
    int64_t bytes = TEXT_BYTES;
    if (!take_address(c, &name, &address))
        return false;
    if (helper == QUT_PROBE_STRING && address.array_bytes &&
        address.array_bytes < TEXT_BYTES) // an array of characters: what is behind it is none of it
        bytes = address.array_bytes + 1;
    if (probe_is_sign(c, ",")) {
        struct probe_token size;
        if (!probe_next(c))
            return false;
        size = c->token;
        if (!probe_constant(c, &bytes, "the size of a text"))
            return false;
        if (bytes < 2 || bytes > QUT_PROBE_READ_BYTES_MAX)
            return probe_fail(c, size.at, size.length, "a text has 2 to %d bytes", QUT_PROBE_READ_BYTES_MAX);
    }
    o->where = PROBE_ON_STACK;
    o->type = PROBE_TEXT;
    o->number = bytes;
    o->words = ((uint32_t)bytes + WORD_BYTES - 1) / WORD_BYTES;
    return probe_take_sign(c, ")") && probe_take_words(c, o->words, name.at, name.length, &o->word) &&
           probe_stack_address(c, 1, o->word) && probe_load_number(c, 2, bytes) && probe_call(c, helper);
}

// ---- stacks

static bool take_stack(struct probe_compiler *c, struct probe_operand *o)
{
    const struct probe_token name = c->token;
    int64_t frames = QUT_PROBE_STACK_FRAMES_MAX;
    if (!qut_probe_is_inside(c->kind))
        return probe_fail(c, name.at, name.length, "a stack is taken in \"entry\" and \"return\" only");
    if (!probe_next(c) || !probe_take_sign(c, "("))
        return false;
    const struct probe_token size = c->token;
    if (!probe_is_sign(c, ")")) {
        if (!probe_constant(c, &frames, "how many frames a stack has"))
            return false;
        if (frames < 1 || frames > QUT_PROBE_STACK_FRAMES_MAX)
            return probe_fail(c, size.at, size.length, "a stack has 1 to %d frames", QUT_PROBE_STACK_FRAMES_MAX);
    }
    o->where = PROBE_IN_R0;
    o->type = PROBE_STACK;
    return probe_take_sign(c, ")") && probe_load_number(c, 1, frames) && probe_call(c, QUT_PROBE_STACK);
}

// ---- texts

bool probe_compare_texts(struct probe_compiler *c, struct probe_operand *a, struct probe_operand *b, const char *sign)
{
    struct probe_operand *text = a->where == PROBE_LITERAL ? b : a, *literal = text == a ? b : a;
    const bool is_equal = strcmp(sign, "==") == 0;
    if ((!is_equal && strcmp(sign, "!=") != 0) || a->type != b->type)
        return probe_fail(c, a->at, b->at + b->length - a->at, "texts are compared with texts, by == and != only");
    if (literal->where != PROBE_LITERAL || text->where != PROBE_ON_STACK)
        return probe_fail(c, a->at, b->at + b->length - a->at, "one of two texts must be in quotes, the other str()");
    size_t length;
    char *characters = probe_token_text(c, &literal->literal, &length);
    if (!characters)
        return probe_no_memory(c);
    bool is_good = length < (size_t)text->number ||
                   probe_fail(c, literal->at, literal->length, "longer than the %d characters that str() keeps here",
                              (int)text->number - 1);
    struct probe_operand truth = {.where = PROBE_TRUTH, .if_true = PROBE_NO_JUMP, .if_false = PROBE_NO_JUMP};
    for (size_t at = 0; is_good && at <= length; at += WORD_BYTES) {
        uint64_t word = 0;
        memcpy(&word, characters + at, length + 1 - at < WORD_BYTES ? length + 1 - at : WORD_BYTES);
        const struct probe_operand place = {.where = PROBE_ON_STACK, .word = text->word - (uint32_t)(at / WORD_BYTES)};
        is_good = probe_load(c, 0, &place) && probe_load_number(c, 1, (int64_t)word) &&
                  probe_jump(c, QUT_PROBE_CLASS_JMP | QUT_PROBE_JNE | QUT_PROBE_SOURCE_X, 0, 1, 0, &truth.if_false);
    }
    free(characters);
    if (!is_good)
        return false;
    probe_give_words(c, text->words);
    truth.at = a->at;
    truth.length = b->at + b->length - a->at;
    *a = truth;
    return is_equal || probe_not(c, a);
}

// ---- maps

static bool look_up(struct probe_compiler *c, struct probe_operand *o)
{
    const struct qut_probe_map as = {.kind = QUT_PROBE_VALUE};
    struct probe_keyed keyed;
    uint32_t map;
    if (!probe_key(c, &keyed))
        return false;
    if (probe_find_map(c, &keyed.name, &map))
        keyed.value = c->script->maps.items[map].value;
    if (!probe_map_is(c, &keyed, &as, &map) || !probe_call_with_key(c, QUT_PROBE_LOOKUP, map, &keyed))
        return false;
    if (!c->outer && !c->read_maps[map].length)
        c->read_maps[map] = keyed.name;
    probe_give_words(c, keyed.key.words);
    o->where = PROBE_IN_R0;
    o->type = keyed.value;
    return true;
}

// ---- values of places with a meaning

static bool no_such_value(struct probe_compiler *c, enum probe_builtin_value value)
{
    char places[64] = "";
    for (size_t i = 0; i < PROBE_BUILTINS; i++)
        if (probe_builtins[i].variants[0].values[value])
            snprintf(places + strlen(places), sizeof places - strlen(places), "%s\"%s\"", *places ? ", " : "",
                     probe_builtins[i].name);
    return probe_fail(c, c->token.at, c->token.length, "%s is known in %s only", probe_builtin_value_name(value),
                      places);
}

static bool take_builtin_value(struct probe_compiler *c, enum probe_builtin_value value, struct probe_operand *o)
{
    const char *text = c->variant ? c->variant->values[value] : NULL;
    const struct probe_token name = c->token;
    struct probe_source was;
    if (!text)
        return no_such_value(c, value);
    const bool done = probe_source_enter(c, &was, text) && probe_integer(c, o);
    probe_source_leave(c, &was);
    o->at = name.at;
    o->length = name.length;
    return done && probe_next(c);
}

// ---- all of them

static bool in_parentheses(struct probe_compiler *c, struct probe_operand *o)
{
    const bool was = c->is_slash_an_end;
    c->is_slash_an_end = false;
    if (!probe_next(c) || !probe_expression(c, o))
        return false;
    c->is_slash_an_end = was;
    return probe_take_sign(c, ")");
}

static bool named(struct probe_compiler *c, struct probe_operand *o)
{
    const struct probe_token name = c->token;
    const bool was = c->is_slash_an_end;
    bool done;
    for (size_t i = 0; i < FIELDS; i++)
        if (probe_is_name(c, fields[i].name))
            return take_field(c, &fields[i], o);
    enum probe_builtin_value value;
    if (probe_is_builtin_value(c, &value))
        return take_builtin_value(c, value, o);
    c->is_slash_an_end = false;
    if (probe_is_name(c, "args")) {
        c->is_slash_an_end = was;
        return probe_argument(c, o, false);
    }
    const struct number_at *number = NULL;
    for (size_t i = 0; i < NUMBERS; i++)
        if (probe_is_name(c, numbers_at[i].name))
            number = &numbers_at[i];
    if (number)
        done = read_number(c, number, o);
    else if (probe_is_name(c, "str"))
        done = read_text(c, QUT_PROBE_STRING, o);
    else if (probe_is_name(c, "path"))
        done = read_text(c, QUT_PROBE_PATH, o);
    else if (probe_is_name(c, "stack"))
        done = take_stack(c, o);
    else
        return unknown_name(c, &name);
    c->is_slash_an_end = was;
    return done;
}

static bool primary(struct probe_compiler *c, struct probe_operand *o)
{
    o->number = (int64_t)c->token.number;
    switch (c->token.kind) {
    case PROBE_TOKEN_NUMBER: return probe_next(c);
    case PROBE_TOKEN_NAME: return named(c, o);
    case PROBE_TOKEN_MAP: return look_up(c, o);
    case PROBE_TOKEN_TEXT:
        o->where = PROBE_LITERAL;
        o->type = PROBE_TEXT;
        o->literal = c->token;
        return probe_next(c);
    default: return probe_is_sign(c, "(") ? in_parentheses(c, o) : probe_fail_here(c, "a value");
    }
}

bool probe_unary(struct probe_compiler *c, struct probe_operand *o)
{
    const struct probe_token sign = c->token;
    const bool is_not = probe_is_sign(c, "!"), is_complement = probe_is_sign(c, "~");
    *o = (struct probe_operand){.where = PROBE_CONSTANT, .at = sign.at, .length = sign.length};
    if (++c->depth > UNARY_MAX)
        return probe_fail(c, sign.at, sign.length, "too much lies in each other here");
    if (is_not || is_complement || probe_is_sign(c, "-")) {
        if (!probe_next(c) || !probe_unary(c, o) || !(is_not ? probe_not(c, o) : probe_negate(c, o, is_complement)))
            return false;
        o->length += o->at - sign.at;
        o->at = sign.at;
    } else {
        if (!primary(c, o))
            return false;
        o->at = sign.at;
    }
    c->depth--;
    return true;
}
