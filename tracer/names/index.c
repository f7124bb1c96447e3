// SPDX-License-Identifier: Apache-2.0
#include "tracer/names/index.h"

#include <stdlib.h>

static void put(struct names_index_slot *slots, size_t capacity, struct names_index_slot slot)
{
    size_t at = slot.hash & (capacity - 1);
    while (slots[at].item)
        at = (at + 1) & (capacity - 1);
    slots[at] = slot;
}

static bool grow(struct names_index *index)
{
    size_t capacity = index->capacity ? 2 * index->capacity : 64;
    struct names_index_slot *slots = calloc(capacity, sizeof *slots);
    if (!slots)
        return false;
    for (size_t i = 0; i < index->capacity; i++)
        if (index->slots[i].item)
            put(slots, capacity, index->slots[i]);
    free(index->slots);
    index->slots = slots;
    index->capacity = capacity;
    return true;
}

uint32_t names_index_find(const struct names_index *index, uint64_t hash, names_equal_fn equal, const void *context)
{
    if (!index->capacity)
        return NAMES_INDEX_NONE;
    for (size_t at = (uint32_t)hash & (index->capacity - 1); index->slots[at].item;
         at = (at + 1) & (index->capacity - 1)) {
        const struct names_index_slot *slot = &index->slots[at];
        if (slot->hash == (uint32_t)hash && equal(context, slot->item - 1))
            return slot->item - 1;
    }
    return NAMES_INDEX_NONE;
}

bool names_index_add(struct names_index *index, uint64_t hash, uint32_t item)
{
    if (item >= NAMES_INDEX_NONE - 1 || (2 * (index->count + 1) > index->capacity && !grow(index)))
        return false;
    put(index->slots, index->capacity, (struct names_index_slot){(uint32_t)hash, item + 1});
    index->count++;
    return true;
}

void names_index_free(struct names_index *index)
{
    free(index->slots);
    *index = (struct names_index){0};
}
