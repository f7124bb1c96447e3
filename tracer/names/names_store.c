// SPDX-License-Identifier: Apache-2.0
#include "tracer/names/names_store.h"

#include <stdlib.h>

// Strings are kept once: equal ones have one address.
static uint64_t hash_of(const struct name *name)
{
    uint64_t hash = base_hash_word(0, (uintptr_t)name->function);
    return base_hash_word(base_hash_word(hash, (uintptr_t)name->module), (uintptr_t)name->file);
}

static uint32_t find_id(const struct names *names, const struct name *name, uint64_t hash)
{
    uint32_t id;
    for (uint32_t step = 0; (id = base_hash_next(&names->ids, hash, &step)) != BASE_HASH_NONE;) {
        const struct name *other = names_by_id(names, id);
        if (other->function == name->function && other->module == name->module && other->file == name->file)
            break;
    }
    return id;
}

static bool has_room(struct names *names)
{
    return BASE_RESERVE(&names->functions, 1) && BASE_RESERVE(&names->by_id, 1) &&
           names->functions.count < UINT32_MAX - 1;
}

void names_add(struct names *names, uint32_t place, struct name name)
{
    if (names->no_memory || !has_room(names)) {
        names->no_memory = true;
        return;
    }
    uint32_t index = (uint32_t)names->functions.count;
    uint64_t hash = hash_of(&name);
    name.id = find_id(names, &name, hash);
    if (name.id == BASE_HASH_NONE) {
        name.id = (uint32_t)names->by_id.count;
        if (!base_hash_add(&names->ids, hash, name.id)) {
            names->no_memory = true;
            return;
        }
        *BASE_ADD(&names->by_id) = index;
    }
    *BASE_ADD(&names->functions) = name;
    if (names->places[place].count++ == 0)
        names->places[place].first = index;
}

const char *names_keep(struct names *names, const char *text, size_t length)
{
    uint32_t number = base_interner_add_part(&names->strings, text, length);
    names->no_memory |= names->strings.has_failed;
    return base_interner_text(&names->strings, number);
}

void names_free(struct names *names)
{
    if (!names)
        return;
    base_interner_free(&names->strings);
    base_hash_free(&names->ids);
    free(names->place_of);
    free(names->places);
    base_vector_free(&names->functions.vector);
    base_vector_free(&names->by_id.vector);
    free(names->missing);
    free(names);
}

size_t names_count(const struct names *names, uint32_t node)
{
    return node == 0 || node >= names->node_count ? 0 : names->places[names->place_of[node]].count;
}

const struct name *names_at(const struct names *names, uint32_t node, size_t index)
{
    return &names->functions.items[names->places[names->place_of[node]].first + index];
}

size_t names_id_count(const struct names *names)
{
    return names->by_id.count;
}

const struct name *names_by_id(const struct names *names, uint32_t id)
{
    return &names->functions.items[names->by_id.items[id]];
}

size_t names_missing(const struct names *names, const struct names_missing **missing)
{
    *missing = names->missing;
    return names->missing_count;
}
