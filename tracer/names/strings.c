// SPDX-License-Identifier: Apache-2.0
#include "tracer/names/strings.h"

#include <stdlib.h>
#include <string.h>

enum { BLOCK_BYTES = 1 << 16 };

struct wanted {
    const struct names_strings *strings;
    const char *text;
    size_t length;
};

static bool equal(const void *context, uint32_t item)
{
    const struct wanted *wanted = context;
    const char *other = wanted->strings->items[item];
    return strncmp(other, wanted->text, wanted->length) == 0 && other[wanted->length] == '\0';
}

static uint64_t hash_of(const char *text, size_t length)
{
    uint64_t hash = length;
    for (; length >= 8; text += 8, length -= 8) {
        uint64_t word;
        memcpy(&word, text, sizeof word);
        hash = names_mix(hash ^ word);
    }
    uint64_t rest = 0;
    memcpy(&rest, text, length);
    return names_mix(hash ^ rest);
}

static bool new_block(struct names_strings *strings, size_t least_bytes)
{
    if (strings->block_count == strings->block_capacity) {
        size_t capacity = strings->block_capacity ? 2 * strings->block_capacity : 16;
        char **blocks = realloc(strings->blocks, capacity * sizeof *blocks);
        if (!blocks)
            return false;
        strings->blocks = blocks;
        strings->block_capacity = capacity;
    }
    size_t bytes = least_bytes > BLOCK_BYTES ? least_bytes : BLOCK_BYTES;
    char *block = malloc(bytes);
    if (!block)
        return false;
    strings->blocks[strings->block_count++] = block;
    strings->block_used = 0;
    strings->block_bytes = bytes;
    return true;
}

static const char *copy(struct names_strings *strings, const char *text, size_t length)
{
    if (length + 1 > strings->block_bytes - strings->block_used && !new_block(strings, length + 1))
        return NULL;
    char *made = strings->blocks[strings->block_count - 1] + strings->block_used;
    memcpy(made, text, length);
    made[length] = '\0';
    strings->block_used += length + 1;
    return made;
}

const char *names_string(struct names_strings *strings, const char *text, size_t length)
{
    length = strnlen(text, length); // a NUL ends it, or it could not be found again
    uint64_t hash = hash_of(text, length);
    const struct wanted wanted = {strings, text, length};
    uint32_t found = names_index_find(&strings->index, hash, equal, &wanted);
    if (found != NAMES_INDEX_NONE)
        return strings->items[found];
    if (strings->count == strings->capacity) {
        size_t capacity = strings->capacity ? 2 * strings->capacity : 1024;
        const char **items = realloc(strings->items, capacity * sizeof *items);
        if (!items)
            return NULL;
        strings->items = items;
        strings->capacity = capacity;
    }
    const char *made = copy(strings, text, length);
    if (!made || !names_index_add(&strings->index, hash, (uint32_t)strings->count))
        return NULL;
    strings->items[strings->count++] = made;
    return made;
}

void names_strings_free(struct names_strings *strings)
{
    for (size_t i = 0; i < strings->block_count; i++)
        free(strings->blocks[i]);
    free(strings->blocks);
    free(strings->items);
    names_index_free(&strings->index);
    *strings = (struct names_strings){0};
}
