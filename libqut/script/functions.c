// SPDX-License-Identifier: Apache-2.0
// Functions and scripts of JavaScript that were met. Their objects move, so they are known by what they are: a script
// by its number and its name, a function by its script, where it begins there and its name.
#include <stdlib.h>
#include <string.h>

#include "libqut/script/inside.h"

enum { HASH_BITS = 14, SCRIPTS_MAX = 1 << 18 };

static uint64_t hash_text(uint64_t hash, const char *text)
{
    for (; *text; text++)
        hash = (hash ^ (uint8_t)*text) * UINT64_C(0x100000001b3);
    return hash;
}

static unsigned hash_of(const char *text, uint32_t a, uint32_t b)
{
    uint64_t hash = hash_text(UINT64_C(0xcbf29ce484222325) ^ a ^ (uint64_t)b << 32, text);
    return (unsigned)(hash * UINT64_C(0x9e3779b97f4a7c15) >> (64 - HASH_BITS));
}

static bool make_room(void **items, size_t *capacity, size_t count, uint32_t **heads, size_t most)
{
    if (!*heads)
        *heads = calloc((size_t)1 << HASH_BITS, sizeof **heads);
    if (!*heads || count == most)
        return false;
    if (count < *capacity)
        return true;
    size_t wanted = *capacity ? *capacity * 2 : 256;
    void *more = realloc(*items, wanted * sizeof(void *));
    if (!more)
        return false;
    *items = more;
    *capacity = wanted;
    return true;
}

static bool is_text(const char *kept, const char *text)
{
    return strcmp(kept ? kept : "", text) == 0;
}

// Where it was seen last is kept up to date. 0: there is no room.
static uint32_t intern_script(struct script_machine *v8, const struct v8_function *function)
{
    const struct v8_script *seen = &function->script;
    unsigned hash = hash_of(function->file, (uint32_t)seen->id, (uint32_t)seen->first_line);
    for (uint32_t i = v8->script_heads ? v8->script_heads[hash] : 0; i; i = v8->scripts[i - 1]->older) {
        struct script_source *script = v8->scripts[i - 1];
        if (script->seen.id != seen->id || script->seen.first_line != seen->first_line ||
            !is_text(script->file, function->file))
            continue;
        if (script->seen.source != seen->source || script->seen.address != seen->address)
            script->is_unread = false;
        if (script->seen.source != seen->source)
            script->is_read = false;
        script->seen = *seen;
        return i;
    }
    void *items = v8->scripts;
    bool has_room = make_room(&items, &v8->script_capacity, v8->script_count, &v8->script_heads, SCRIPTS_MAX);
    v8->scripts = items;
    struct script_source *script = has_room ? calloc(1, sizeof *script) : NULL;
    if (!script)
        return 0;
    script->seen = *seen;
    script->file = *function->file ? strdup(function->file) : NULL;
    script->older = v8->script_heads[hash];
    v8->scripts[v8->script_count++] = script;
    return v8->script_heads[hash] = (uint32_t)v8->script_count;
}

uint32_t script_intern(struct script_machine *v8, const struct v8_function *function)
{
    uint32_t script = function->script.address ? intern_script(v8, function) : 0;
    unsigned hash = hash_of(function->name, script, (uint32_t)function->start);
    for (uint32_t i = v8->function_heads ? v8->function_heads[hash] : 0; i; i = v8->functions[i - 1]->older) {
        const struct script_function *known = v8->functions[i - 1];
        // One without a name is given another text.
        if (known->script == script && known->start == function->start &&
            (*function->name ? is_text(known->name, function->name) : !known->name || *known->name == '('))
            return i;
    }
    void *items = v8->functions;
    bool has_room =
        make_room(&items, &v8->function_capacity, v8->function_count, &v8->function_heads, SCRIPT_FUNCTIONS_MAX);
    v8->functions = items;
    struct script_function *made = has_room ? calloc(1, sizeof *made) : NULL;
    if (!made)
        return 0;
    made->name = *function->name ? strdup(function->name) : NULL;
    made->file = *function->file ? strdup(function->file) : NULL;
    made->is_finished = made->name != NULL;
    made->start = function->start;
    made->script = script;
    made->older = v8->function_heads[hash];
    v8->functions[v8->function_count++] = made;
    return v8->function_heads[hash] = (uint32_t)v8->function_count;
}

void script_free_functions(struct script_machine *v8)
{
    for (size_t i = 0; i < v8->function_count; i++) {
        free(v8->functions[i]->name);
        free(v8->functions[i]->file);
        free(v8->functions[i]);
    }
    for (size_t i = 0; i < v8->script_count; i++) {
        free(v8->scripts[i]->file);
        free(v8->scripts[i]->line_starts);
        free(v8->scripts[i]);
    }
    free(v8->functions);
    free(v8->scripts);
    free(v8->function_heads);
    free(v8->script_heads);
}

const struct script_function *script_function(const struct qut_target *target, uint32_t number)
{
    const struct script_machine *v8 = target->v8;
    return v8 && number && number <= v8->function_count ? v8->functions[number - 1] : NULL;
}
