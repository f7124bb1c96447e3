// SPDX-License-Identifier: Apache-2.0
#include "tracer/names/readable.h"

#include <stdlib.h>
#include <string.h>

#include "tracer/symbols/demangle.h"

struct wanted {
    const struct names_readables *readables;
    const char *raw;
};

static bool equal(const void *context, uint32_t item)
{
    const struct wanted *wanted = context;
    return wanted->readables->items[item].raw == wanted->raw;
}

static bool grow(struct names_readables *readables)
{
    if (readables->count < readables->capacity)
        return true;
    size_t capacity = readables->capacity ? 2 * readables->capacity : 256;
    struct names_readable *items = realloc(readables->items, capacity * sizeof *items);
    if (!items)
        return false;
    readables->items = items;
    readables->capacity = capacity;
    return true;
}

struct names_readable names_make_readable(struct names_readables *readables, struct names *names, const char *raw,
                                          size_t raw_length)
{
    static const struct names_readable none = {"", "", NULL};
    const char *kept = names_keep(names, raw, raw_length);
    const struct wanted wanted = {readables, kept};
    uint64_t hash = names_mix((uintptr_t)kept);
    uint32_t found = names_index_find(&readables->index, hash, equal, &wanted);
    if (found != NAMES_INDEX_NONE)
        return readables->items[found];
    char *text = qut_demangle(kept);
    if (!text || !grow(readables) || !names_index_add(&readables->index, hash, (uint32_t)readables->count)) {
        names->no_memory = true;
        free(text);
        return none;
    }
    struct names_readable *made = &readables->items[readables->count++];
    *made = (struct names_readable){.raw = kept, .readable = kept};
    if (strcmp(text, kept) != 0) {
        made->readable = names_keep(names, text, strlen(text));
        made->mangled = kept;
    }
    free(text);
    return *made;
}

void names_readables_free(struct names_readables *readables)
{
    free(readables->items);
    names_index_free(&readables->index);
}
