// SPDX-License-Identifier: Apache-2.0
#include "base/hash_index.h"

#include <stdlib.h>

enum { SLOTS_FIRST = 64 };
static const size_t count_max = (size_t)1 << 30;

static void put(struct base_hash_index *index, struct base_hash_slot slot)
{
    uint32_t at = slot.hash & index->mask;
    while (index->slots[at].number)
        at = (at + 1) & index->mask;
    index->slots[at] = slot;
}

bool base_hash_reserve(struct base_hash_index *index, size_t count)
{
    size_t slot_count = index->slots ? (size_t)index->mask + 1 : 0, wanted = slot_count ? slot_count : SLOTS_FIRST;
    if (count > count_max)
        return false;
    while (wanted < 2 * count)
        wanted *= 2;
    if (wanted == slot_count)
        return true;
    struct base_hash_index grown = {calloc(wanted, sizeof *grown.slots), (uint32_t)(wanted - 1), index->count};
    if (!grown.slots)
        return false;
    for (size_t i = 0; i < slot_count; i++)
        if (index->slots[i].number)
            put(&grown, index->slots[i]);
    free(index->slots);
    *index = grown;
    return true;
}

bool base_hash_add(struct base_hash_index *index, uint64_t hash, uint32_t number)
{
    if (number == BASE_HASH_NONE || !base_hash_reserve(index, (size_t)index->count + 1))
        return false;
    put(index, (struct base_hash_slot){(uint32_t)hash, number + 1});
    index->count++;
    return true;
}

void base_hash_clear(struct base_hash_index *index)
{
    if (index->slots)
        memset(index->slots, 0, ((size_t)index->mask + 1) * sizeof *index->slots);
    index->count = 0;
}

void base_hash_free(struct base_hash_index *index)
{
    free(index->slots);
    *index = (struct base_hash_index){0};
}
