// SPDX-License-Identifier: Apache-2.0
#include "base/interner.h"

#include <stdlib.h>

enum { BLOCK_BYTES = 1 << 16 };

struct base_interner_block {
    struct base_interner_block *next;
    size_t used, size;
    char bytes[];
};

static const char *copy(struct base_interner *strings, const char *text, size_t length)
{
    struct base_interner_block *block = strings->blocks;
    if (!block || length >= block->size - block->used) {
        size_t size = length >= BLOCK_BYTES ? length + 1 : BLOCK_BYTES;
        block = malloc(sizeof *block + size);
        if (!block)
            return NULL;
        *block = (struct base_interner_block){strings->blocks, 0, size};
        strings->blocks = block;
    }
    char *made = memcpy(block->bytes + block->used, text, length);
    made[length] = '\0';
    block->used += length + 1;
    return made;
}

static uint32_t add(struct base_interner *strings, const char *text, size_t length)
{
    uint64_t hash = base_hash_bytes(length, text, length);
    for (uint32_t step = 0, i; (i = base_hash_next(&strings->index, hash, &step)) != BASE_HASH_NONE;)
        if (strncmp(strings->texts[i], text, length) == 0 && strings->texts[i][length] == '\0')
            return i;
    bool has_room = base_vector_reserve(&strings->vector, 1, sizeof *strings->texts);
    const char *made = has_room ? copy(strings, text, length) : NULL;
    strings->has_failed = !made || !base_hash_add(&strings->index, hash, (uint32_t)strings->count);
    if (strings->has_failed)
        return 0;
    strings->texts[strings->count] = made;
    return (uint32_t)strings->count++;
}

uint32_t base_interner_add_part(struct base_interner *strings, const char *text, size_t size)
{
    if (!strings->count && !strings->has_failed)
        add(strings, "", 0);
    return strings->has_failed ? 0 : add(strings, text, strnlen(text, size));
}

uint32_t base_interner_add(struct base_interner *strings, const char *text)
{
    return base_interner_add_part(strings, text ? text : "", text ? strlen(text) : 0);
}

void base_interner_free(struct base_interner *strings)
{
    for (struct base_interner_block *block = strings->blocks, *next; block; block = next) {
        next = block->next;
        free(block);
    }
    base_vector_free(&strings->vector);
    base_hash_free(&strings->index);
    *strings = (struct base_interner){0};
}
