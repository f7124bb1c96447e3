// SPDX-License-Identifier: Apache-2.0
// Maps, their keys, and other values that lie behind each other: each is put below the one before it.
#include <stdio.h>
#include <string.h>

#include "tracer/probe/inside.h"

enum { WORD_BYTES = 8 };

// ---- values behind each other

static bool is_of_name(char character)
{
    return (character >= 'a' && character <= 'z') || (character >= 'A' && character <= 'Z') || character == '_' ||
           (character >= '0' && character <= '9');
}

// The last one before the next token, of which a part made of nothing but numbers and signs has none.
static void name_part(const struct probe_compiler *c, uint32_t begin, struct probe_part *part)
{
    for (uint32_t at = begin; at < c->token.at;) {
        const uint32_t first = at;
        while (at < c->token.at && is_of_name(c->text[at]))
            at++;
        if (at > first && c->text[first] > '9')
            snprintf(part->name, sizeof part->name, "%.*s", (int)(at - first), c->text + first);
        at += at == first;
    }
}

static bool put_part(struct probe_compiler *c, struct probe_parts *parts, struct probe_operand *o)
{
    enum { PARTS_MAX = sizeof parts->items / sizeof *parts->items };
    if (parts->count == PARTS_MAX)
        return probe_fail(c, o->at, o->length, "more than %d values", PARTS_MAX);
    if (o->where == PROBE_LITERAL)
        return probe_fail(c, o->at, o->length, "a text in quotes is compared only");
    if (o->type != PROBE_TEXT && !probe_spill(c, o))
        return false;
    parts->items[parts->count++] = (struct probe_part){.type = o->type, .words = o->words};
    parts->words += o->words;
    return true;
}

bool probe_parts_of(struct probe_compiler *c, const char *end, struct probe_parts *parts, uint32_t *word)
{
    const bool was = c->is_slash_an_end;
    *parts = (struct probe_parts){.count = 0};
    c->is_slash_an_end = false;
    while (!probe_is_sign(c, end)) {
        struct probe_operand o;
        if (parts->count && !probe_take_sign(c, ","))
            return false;
        const uint32_t begin = c->token.at;
        if (!probe_expression(c, &o) || !put_part(c, parts, &o))
            return false;
        name_part(c, begin, &parts->items[parts->count - 1]);
    }
    c->is_slash_an_end = was;
    *word = c->stack_words;
    return probe_next(c);
}

// ---- maps

const char *probe_map_kind_name(uint32_t kind)
{
    static const char *const names[QUT_PROBE_MAP_KIND_END] = {
        [QUT_PROBE_COUNT] = "count()", [QUT_PROBE_SUM] = "sum()",     [QUT_PROBE_MIN] = "min()",
        [QUT_PROBE_MAX] = "max()",     [QUT_PROBE_AVG] = "avg()",     [QUT_PROBE_HIST] = "hist()",
        [QUT_PROBE_LHIST] = "lhist()", [QUT_PROBE_VALUE] = "a value",
    };
    return kind < QUT_PROBE_MAP_KIND_END ? names[kind] : "?";
}

bool probe_find_map(const struct probe_compiler *c, const struct probe_token *name, uint32_t *number)
{
    for (uint32_t i = 0; i < c->script->maps.count; i++) {
        const char *known = c->script->maps.items[i].name;
        if (strlen(known) == name->length - 1 && memcmp(known, c->text + name->at + 1, name->length - 1) == 0) {
            *number = i;
            return true;
        }
    }
    return false;
}

bool probe_key(struct probe_compiler *c, struct probe_keyed *keyed)
{
    *keyed = (struct probe_keyed){.name = c->token};
    if (!probe_next(c))
        return false;
    if (!probe_is_sign(c, "["))
        return true;
    if (!probe_next(c) || !probe_parts_of(c, "]", &keyed->key, &keyed->word))
        return false;
    const struct probe_token *name = &keyed->name;
    if (keyed->key.count == 0)
        return probe_fail(c, name->at, name->length, "there is nothing in its key: leave the brackets out");
    return keyed->key.words <= QUT_PROBE_KEY_WORDS_MAX ||
           probe_fail(c, name->at, name->length, "its key is longer than %d bytes",
                      QUT_PROBE_KEY_WORDS_MAX * WORD_BYTES);
}

static bool same_key(const struct probe_parts *a, const struct probe_parts *b)
{
    if (a->count != b->count)
        return false;
    for (uint32_t i = 0; i < a->count; i++)
        if (a->items[i].type != b->items[i].type || a->items[i].words != b->items[i].words)
            return false;
    return true;
}

static bool add_map(struct probe_compiler *c, const struct probe_keyed *keyed, const struct qut_probe_map *as)
{
    const struct probe_token *name = &keyed->name;
    if (c->maps.count == QUT_PROBE_MAPS_MAX)
        return probe_fail(c, name->at, name->length, "more than %d maps", QUT_PROBE_MAPS_MAX);
    struct qut_probe_map *map = BASE_ADD(&c->maps);
    struct probe_map *known = map ? BASE_ADD(&c->script->maps) : NULL;
    if (!known)
        return probe_no_memory(c);
    *map = *as;
    map->key_words = keyed->key.words;
    *known = (struct probe_map){
        .name = probe_copy(c, name->at + 1, name->length - 1), .key = keyed->key, .value = keyed->value};
    return known->name != NULL;
}

bool probe_map_is(struct probe_compiler *c, const struct probe_keyed *keyed, const struct qut_probe_map *as,
                  uint32_t *number)
{
    const struct probe_token *name = &keyed->name;
    if (!probe_find_map(c, name, number)) {
        *number = (uint32_t)c->maps.count;
        return add_map(c, keyed, as);
    }
    const struct qut_probe_map *map = &c->maps.items[*number];
    if (map->kind != as->kind)
        return probe_fail(c, name->at, name->length, "it is %s elsewhere: a map has one kind",
                          probe_map_kind_name(map->kind));
    if (map->low != as->low || map->step != as->step || map->steps != as->steps)
        return probe_fail(c, name->at, name->length, "it has other steps elsewhere");
    if (c->script->maps.items[*number].value != keyed->value)
        return probe_fail(c, name->at, name->length, "its values are %s elsewhere",
                          keyed->value == PROBE_STACK ? "numbers" : "stacks");
    return same_key(&c->script->maps.items[*number].key, &keyed->key) ||
           probe_fail(c, name->at, name->length, "it has another key elsewhere");
}

bool probe_call_with_key(struct probe_compiler *c, enum qut_probe_helper helper, uint32_t map,
                         const struct probe_keyed *keyed)
{
    return probe_load_number(c, 1, (int64_t)map) && (keyed->key.words == 0 || probe_stack_address(c, 2, keyed->word)) &&
           probe_call(c, helper);
}
