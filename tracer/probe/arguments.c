// SPDX-License-Identifier: Apache-2.0
// Values that have names and types: args->x->y, retval->x. What is read of them goes through the helper that bears any
// address.
#include <string.h>

#include "tracer/probe/resolve.h"
#include "tracer/probe/values.h"

enum { ALU64 = QUT_PROBE_CLASS_ALU64 };

// ---- what the script says

struct said {
    struct probe_path path;
    struct probe_token steps[PROBE_STEPS_MAX]; // where each of them stands
};

static bool takes_step(const struct probe_compiler *c)
{
    return probe_is_sign(c, "->") || probe_is_sign(c, ".") || probe_is_sign(c, "[");
}

static bool take_index(struct probe_compiler *c, struct probe_step *step, struct probe_token *at)
{
    const bool was = c->is_slash_an_end;
    int64_t index;
    c->is_slash_an_end = false;
    if (!probe_next(c))
        return false;
    *at = c->token;
    if (!probe_constant(c, &index, "an index"))
        return false;
    c->is_slash_an_end = was;
    if (index != (int32_t)index)
        return probe_fail(c, at->at, at->length, "this index is too large");
    step->kind = PROBE_STEP_INDEX;
    step->index = (int32_t)index;
    return probe_take_sign(c, "]");
}

static bool take_step(struct probe_compiler *c, struct said *said)
{
    struct probe_path *path = &said->path;
    const bool is_first = path->count == 0 && !path->is_result, is_arrow = probe_is_sign(c, "->");
    if (path->count == PROBE_STEPS_MAX)
        return probe_fail(c, c->token.at, c->token.length, "more than %d steps", PROBE_STEPS_MAX);
    struct probe_token *at = &said->steps[path->count];
    struct probe_step *step = &path->steps[path->count++];
    if (probe_is_sign(c, "["))
        return take_index(c, step, at);
    if (!probe_next(c))
        return false;
    *at = c->token;
    if (at->kind != PROBE_TOKEN_NAME)
        return probe_fail_here(c, is_first ? "an argument's name" : "a member's name");
    step->kind = is_first ? PROBE_STEP_ARGUMENT : is_arrow ? PROBE_STEP_POINTED : PROBE_STEP_MEMBER;
    step->name = c->text + at->at;
    step->name_length = at->length;
    return probe_next(c);
}

// ---- what it means

static bool say_unresolved(struct probe_compiler *c, const struct said *said, const struct probe_unresolved *why)
{
    if (why->is_no_memory)
        return probe_no_memory(c);
    const struct probe_token *at = &said->steps[why->step];
    const struct probe_hint hint = probe_hint(c, at, why->words, why->word_count);
    if (*hint.text || why->word_count == 0)
        return probe_fail(c, at->at, at->length, "%s%s", why->text, hint.text);
    char all[80] = "";
    size_t used = 0;
    for (uint32_t i = 0; i < why->word_count; i++) {
        const size_t length = strlen(why->words[i]);
        if (used + length + sizeof ": there are , ..." > sizeof all) {
            strcpy(all + used, ", ...");
            break;
        }
        used = (size_t)(stpcpy(stpcpy(all + used, i ? ", " : ": there are "), why->words[i]) - all);
    }
    return probe_fail(c, at->at, at->length, "%s%s", why->text, all);
}

static bool resolve(struct probe_compiler *c, const struct said *said, struct probe_recipe *recipe)
{
    const char *patterns[PROBE_PLACES_MAX];
    size_t count = 0;
    const uint32_t program = (uint32_t)c->programs.count - 1;
    struct probe_unresolved why = {.text = ""};
    for (size_t i = c->first_place; i < c->script->places.count && count < PROBE_PLACES_MAX; i++)
        if (c->script->places.items[i].kind == c->kind && c->script->places.items[i].program == program) {
            c->script->places.items[i].is_resolved = true;
            patterns[count++] = c->script->places.items[i].pattern;
        }
    *recipe = (struct probe_recipe){.load_count = 0};
    return c->resolver->resolve(c->resolver, patterns, count, &said->path, recipe, &why) == 0 ||
           say_unresolved(c, said, &why);
}

// ---- the code

static bool narrow(struct probe_compiler *c, const struct probe_recipe *recipe)
{
    const unsigned bits = recipe->bits, above = 64 - bits - recipe->shift_bits;
    if (bits == 64 || (recipe->load_count && !recipe->is_signed && recipe->shift_bits == 0 &&
                       bits == 8u * recipe->last_bytes)) // the helper fills up with 0
        return true;
    if (recipe->is_signed && recipe->shift_bits == 0 && (bits == 8 || bits == 16 || bits == 32))
        return probe_emit(c, ALU64 | QUT_PROBE_MOV | QUT_PROBE_SOURCE_X, 0, 0, (int16_t)bits, 0);
    return (above == 0 || probe_emit(c, ALU64 | QUT_PROBE_LSH, 0, 0, 0, (int32_t)above)) &&
           probe_emit(c, ALU64 | (recipe->is_signed ? QUT_PROBE_ARSH : QUT_PROBE_RSH), 0, 0, 0, (int32_t)(64 - bits));
}

static bool load(struct probe_compiler *c, const struct probe_recipe *recipe, uint32_t at, uint32_t length)
{
    enum { ADDRESS = 3 };
    uint32_t word;
    if (!probe_take_words(c, 1, at, length, &word))
        return false;
    const struct probe_operand loaded = {.where = PROBE_ON_STACK, .word = word};
    for (unsigned i = 0; i < recipe->load_count; i++) {
        const bool is_last = i + 1u == recipe->load_count;
        if ((recipe->offsets[i] && !probe_emit(c, ALU64 | QUT_PROBE_ADD, ADDRESS, 0, 0, recipe->offsets[i])) ||
            !probe_stack_address(c, 1, word) || !probe_load_number(c, 2, is_last ? recipe->last_bytes : 8) ||
            !probe_call(c, QUT_PROBE_READ) || !probe_load(c, is_last ? 0 : ADDRESS, &loaded))
            return false;
    }
    probe_give_words(c, 1);
    return true;
}

static bool make_code(struct probe_compiler *c, const struct probe_recipe *recipe, struct probe_operand *o)
{
    struct probe_operand field = {.where = PROBE_FIELD, .number = recipe->field};
    o->where = PROBE_IN_R0;
    o->array_bytes = recipe->array_bytes;
    if (recipe->load_count == 0 && recipe->bits == 64 && recipe->added == 0) {
        o->where = PROBE_FIELD;
        o->number = recipe->field;
        return true;
    }
    return probe_load(c, recipe->load_count ? 3 : 0, &field) &&
           (recipe->load_count == 0 || load(c, recipe, o->at, o->length)) && narrow(c, recipe) &&
           (recipe->added == 0 || probe_emit(c, ALU64 | QUT_PROBE_ADD, 0, 0, 0, recipe->added));
}

bool probe_is_result_path(const struct probe_compiler *c)
{
    return takes_step(c);
}

bool probe_argument(struct probe_compiler *c, struct probe_operand *o, bool is_result)
{
    struct said said = {.path = {.is_result = is_result}};
    struct probe_recipe recipe;
    if (!is_result) {
        if (c->kind != QUT_PROBE_ENTRY)
            return probe_fail(c, o->at, o->length, "args is known in \"entry\" only");
        if (!probe_next(c))
            return false;
        if (!probe_is_sign(c, "->"))
            return probe_fail_here(c, "\"->\" and an argument's name");
    }
    if (!c->resolver)
        return probe_fail(c, o->at, o->length, "nothing here knows what the functions' arguments are");
    while (takes_step(c)) {
        const uint32_t begin = o->at;
        if (!take_step(c, &said))
            return false;
        const struct probe_token *last = &said.steps[said.path.count - 1];
        o->length = last->at + last->length - begin;
    }
    return resolve(c, &said, &recipe) && make_code(c, &recipe, o);
}
