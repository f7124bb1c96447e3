// SPDX-License-Identifier: Apache-2.0
#include "tracer/names/store.h"

#include <stdlib.h>

struct wanted {
    const struct names *names;
    const struct name *name;
};

// Strings are kept once: equal ones have one address.
static bool equal(const void *context, uint32_t id)
{
    const struct wanted *wanted = context;
    const struct name *other = &wanted->names->functions[wanted->names->by_id[id]], *name = wanted->name;
    return other->function == name->function && other->module == name->module && other->file == name->file;
}

static uint64_t hash_of(const struct name *name)
{
    uint64_t hash = names_mix((uintptr_t)name->function);
    hash = names_mix(hash + (uintptr_t)name->module);
    return names_mix(hash + (uintptr_t)name->file);
}

static bool grow(struct names *names)
{
    if (names->function_count == names->function_capacity) {
        size_t capacity = names->function_capacity ? 2 * names->function_capacity : 1024;
        struct name *functions = realloc(names->functions, capacity * sizeof *functions);
        if (!functions)
            return false;
        names->functions = functions;
        names->function_capacity = capacity;
    }
    if (names->id_count == names->id_capacity) {
        size_t capacity = names->id_capacity ? 2 * names->id_capacity : 1024;
        uint32_t *by_id = realloc(names->by_id, capacity * sizeof *by_id);
        if (!by_id)
            return false;
        names->by_id = by_id;
        names->id_capacity = capacity;
    }
    return names->function_count < UINT32_MAX - 1;
}

void names_add(struct names *names, uint32_t place, struct name name)
{
    if (names->no_memory || !grow(names)) {
        names->no_memory = true;
        return;
    }
    uint32_t index = (uint32_t)names->function_count;
    const struct wanted wanted = {names, &name};
    uint64_t hash = hash_of(&name);
    name.id = names_index_find(&names->ids, hash, equal, &wanted);
    if (name.id == NAMES_INDEX_NONE) {
        name.id = (uint32_t)names->id_count;
        if (!names_index_add(&names->ids, hash, name.id)) {
            names->no_memory = true;
            return;
        }
        names->by_id[names->id_count++] = index;
    }
    names->functions[names->function_count++] = name;
    if (names->places[place].count++ == 0)
        names->places[place].first = index;
}

const char *names_keep(struct names *names, const char *text, size_t length)
{
    const char *kept = names_string(&names->strings, text, length);
    if (!kept)
        names->no_memory = true;
    return kept ? kept : "";
}

void names_free(struct names *names)
{
    if (!names)
        return;
    names_strings_free(&names->strings);
    names_index_free(&names->ids);
    free(names->place_of);
    free(names->places);
    free(names->functions);
    free(names->by_id);
    free(names->missing);
    free(names);
}

size_t names_count(const struct names *names, uint32_t node)
{
    return node == 0 || node >= names->node_count ? 0 : names->places[names->place_of[node]].count;
}

const struct name *names_at(const struct names *names, uint32_t node, size_t index)
{
    return &names->functions[names->places[names->place_of[node]].first + index];
}

size_t names_id_count(const struct names *names)
{
    return names->id_count;
}

const struct name *names_by_id(const struct names *names, uint32_t id)
{
    return &names->functions[names->by_id[id]];
}

size_t names_missing(const struct names *names, const struct names_missing **missing)
{
    *missing = names->missing;
    return names->missing_count;
}
