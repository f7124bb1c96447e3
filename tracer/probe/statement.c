// SPDX-License-Identifier: Apache-2.0
#include <assert.h>
#include <stdlib.h>
#include <string.h>

#include "tracer/probe/inside.h"

enum { DEPTH_MAX = 64 };

// ---- @name[key] = ...

static const struct aggregation {
    const char *name;
    enum qut_probe_map_kind kind;
} aggregations[] = {{"count", QUT_PROBE_COUNT}, {"sum", QUT_PROBE_SUM}, {"min", QUT_PROBE_MIN},
                    {"max", QUT_PROBE_MAX},     {"avg", QUT_PROBE_AVG}, {"hist", QUT_PROBE_HIST},
                    {"lhist", QUT_PROBE_LHIST}};

static_assert(sizeof aggregations / sizeof *aggregations == PROBE_AGGREGATIONS, "each has a name");

void probe_aggregation_names(const char *names[PROBE_AGGREGATIONS])
{
    for (size_t i = 0; i < PROBE_AGGREGATIONS; i++)
        names[i] = aggregations[i].name;
}

static bool take_steps(struct probe_compiler *c, struct qut_probe_map *map)
{
    const struct probe_token at = c->token; // the comma
    int64_t high;
    if (!probe_take_sign(c, ",") || !probe_constant(c, &map->low, "where the histogram begins") ||
        !probe_take_sign(c, ",") || !probe_constant(c, &high, "where the histogram ends") || !probe_take_sign(c, ",") ||
        !probe_constant(c, &map->step, "a step of the histogram"))
        return false;
    const int64_t far = INT64_C(1) << 61;
    const uint32_t length = c->token.at - at.at;
    if (map->low < -far || high > far || map->low >= high || map->step <= 0)
        return probe_fail(c, at.at, length, "a histogram goes from the lower to the higher, by steps of 1 or more");
    map->steps = ((uint64_t)(high - map->low) + (uint64_t)map->step - 1) / (uint64_t)map->step;
    if (map->steps > QUT_PROBE_LHIST_STEPS_MAX || map->step > (INT64_C(1) << 62) / (int64_t)map->steps)
        return probe_fail(c, at.at, length, "more than %d steps, or too wide ones", QUT_PROBE_LHIST_STEPS_MAX);
    return true;
}

static bool aggregate(struct probe_compiler *c, const struct aggregation *aggregation, struct qut_probe_map *map,
                      struct probe_operand *value)
{
    map->kind = aggregation->kind;
    if (!probe_next(c) || !probe_take_sign(c, "("))
        return false;
    if (aggregation->kind == QUT_PROBE_COUNT) {
        *value = (struct probe_operand){.where = PROBE_CONSTANT, .number = 1};
        return probe_take_sign(c, ")");
    }
    if (!probe_integer(c, value) || !probe_load(c, 3, value) ||
        (aggregation->kind == QUT_PROBE_LHIST && !take_steps(c, map)))
        return false;
    return probe_take_sign(c, ")");
}

static bool is_aggregation(const struct probe_compiler *c, const struct aggregation **aggregation)
{
    for (size_t i = 0; i < sizeof aggregations / sizeof *aggregations; i++)
        if (probe_is_name(c, aggregations[i].name)) {
            *aggregation = &aggregations[i];
            return true;
        }
    return false;
}

static bool assignment(struct probe_compiler *c)
{
    const struct aggregation *aggregation;
    struct qut_probe_map as = {.kind = QUT_PROBE_VALUE};
    struct probe_keyed keyed;
    struct probe_operand value;
    uint32_t map;
    if (!probe_key(c, &keyed))
        return false;
    if (probe_is_sign(c, "+"))
        return probe_fail_here(c, "\"=\", as in @a = count(), or @a = sum(x)");
    if (!probe_take_sign(c, "="))
        return false;
    c->assigned_at = c->token.at;
    if (is_aggregation(c, &aggregation)) {
        if (!aggregate(c, aggregation, &as, &value))
            return false;
        if (aggregation->kind == QUT_PROBE_COUNT && !probe_load(c, 3, &value))
            return false;
    } else if (!probe_expression(c, &value) || (value.type != PROBE_STACK && !probe_needs_integer(c, &value)) ||
               !probe_load(c, 3, &value)) {
        return false;
    } else {
        keyed.value = value.type;
    }
    const bool done = probe_map_is(c, &keyed, &as, &map) && probe_call_with_key(c, QUT_PROBE_AGGREGATE, map, &keyed);
    probe_give_words(c, keyed.key.words);
    if (done)
        c->filled_maps |= UINT32_C(1) << map;
    return done;
}

// ---- printf, print, clear

static bool add_record(struct probe_compiler *c, char *format, const struct probe_token *at, uint32_t *number)
{
    struct probe_record *record = NULL;
    if (c->script->records.count < QUT_PROBE_RECORDS_MAX)
        record = BASE_ADD(&c->script->records);
    else
        probe_fail(c, at->at, at->length, "more than %d printf", QUT_PROBE_RECORDS_MAX);
    if (!record) {
        free(format);
        return probe_no_memory(c);
    }
    *number = (uint32_t)c->script->records.count - 1;
    *record = (struct probe_record){.format = format};
    return true;
}

static bool print_formatted(struct probe_compiler *c)
{
    uint32_t number = 0, word;
    size_t length;
    struct probe_parts parts;
    if (!probe_next(c) || !probe_take_sign(c, "("))
        return false;
    const struct probe_token format = c->token;
    if (format.kind != PROBE_TOKEN_TEXT)
        return probe_fail_here(c, "a format in quotes");
    char *text = probe_token_text(c, &format, &length);
    if (!text)
        return probe_no_memory(c);
    if (!add_record(c, text, &format, &number) || !probe_next(c) ||
        (!probe_is_sign(c, ")") && !probe_take_sign(c, ",")) || !probe_parts_of(c, ")", &parts, &word))
        return false;
    struct probe_record *record = &c->script->records.items[number];
    record->words = parts;
    if (!probe_format_fits(c, record->format, &parts, &format) || !probe_load_number(c, 1, (int64_t)number) ||
        (parts.words && !probe_stack_address(c, 2, word)) || !probe_call(c, QUT_PROBE_EMIT))
        return false;
    probe_give_words(c, parts.words);
    return true;
}

static bool of_whole_map(struct probe_compiler *c, enum qut_probe_helper helper)
{
    const struct probe_token name = c->token;
    uint32_t map;
    if (qut_probe_is_inside(c->kind))
        return probe_fail(c, name.at, name.length,
                          "maps are printed and cleared in \"timer\", \"begin\", \"end\" only");
    if (!probe_next(c) || !probe_take_sign(c, "("))
        return false;
    if (c->token.kind != PROBE_TOKEN_MAP)
        return probe_fail_here(c, "a map");
    if (!probe_find_map(c, &c->token, &map))
        return probe_fail(c, c->token.at, c->token.length, "no probe above fills it%s",
                          probe_map_hint(c, &c->token).text);
    return probe_next(c) && probe_take_sign(c, ")") && probe_load_number(c, 1, (int64_t)map) && probe_call(c, helper);
}

// ---- statements

static bool choice(struct probe_compiler *c)
{
    struct probe_operand condition;
    int32_t end = PROBE_NO_JUMP;
    if (!probe_next(c) || !probe_take_sign(c, "(") || !probe_integer(c, &condition) || !probe_take_sign(c, ")") ||
        !probe_to_truth(c, &condition) || !probe_land(c, &condition.if_true) || !probe_block(c))
        return false;
    if (!probe_is_name(c, "else"))
        return probe_land(c, &condition.if_false);
    if (!probe_jump(c, QUT_PROBE_OP_JA, 0, 0, 0, &end) || !probe_land(c, &condition.if_false) || !probe_next(c))
        return false;
    if (++c->depth > DEPTH_MAX)
        return probe_fail(c, c->token.at, c->token.length, "too much lies in each other here");
    const bool done = probe_is_name(c, "if") ? choice(c) : probe_block(c);
    c->depth--;
    return done && probe_land(c, &end);
}

static bool statement(struct probe_compiler *c, bool *ends_itself)
{
    static const char *const names[] = {"if", "printf", "print", "clear", "else"};
    const struct probe_token token = c->token;
    *ends_itself = probe_is_name(c, "if");
    if (token.kind == PROBE_TOKEN_MAP)
        return assignment(c);
    if (*ends_itself)
        return choice(c);
    if (probe_is_name(c, "printf"))
        return print_formatted(c);
    if (probe_is_name(c, "print"))
        return of_whole_map(c, QUT_PROBE_PRINT);
    if (probe_is_name(c, "clear"))
        return of_whole_map(c, QUT_PROBE_CLEAR);
    const struct aggregation *aggregation;
    if (is_aggregation(c, &aggregation))
        return probe_fail(c, token.at, token.length, "%s is put into a map, as in @a = %s", aggregation->name,
                          probe_map_kind_name(aggregation->kind));
    if (probe_is_name(c, "else"))
        return probe_fail(c, token.at, token.length, "there is no \"if\" before it");
    if (token.kind == PROBE_TOKEN_NAME)
        return probe_fail(c, token.at, token.length, "no statement begins so%s",
                          probe_hint(c, &token, names, sizeof names / sizeof *names).text);
    return probe_fail_here(c, "a statement");
}

bool probe_block(struct probe_compiler *c)
{
    if (++c->depth > DEPTH_MAX)
        return probe_fail(c, c->token.at, c->token.length, "too much lies in each other here");
    if (!probe_take_sign(c, "{"))
        return false;
    while (!probe_is_sign(c, "}")) {
        bool ends_itself;
        if (!statement(c, &ends_itself))
            return false;
        if (probe_is_sign(c, ";")) {
            if (!probe_next(c))
                return false;
        } else if (!ends_itself && !probe_is_sign(c, "}")) {
            return probe_fail_here(c, "\";\"");
        }
    }
    c->depth--;
    return probe_next(c);
}
