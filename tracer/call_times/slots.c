// SPDX-License-Identifier: Apache-2.0
// A hash table with linear probing whose entries go again: what stands behind a free place is put there.
#include <stdlib.h>

#include "base/hash_index.h"
#include "tracer/call_times/inside.h"

// Slots are multiples of 8: a key is none, so that 0 is a free place.
static uint64_t key_of(uint64_t slot)
{
    return slot | 1;
}

static size_t home_of(const struct call_times_slots *slots, uint64_t slot)
{
    return (size_t)base_hash_word(0, slot) & slots->mask;
}

uint64_t *call_times_slots_find(const struct call_times_slots *slots, uint64_t slot)
{
    slot = key_of(slot);
    if (!slots->items)
        return NULL;
    for (size_t at = home_of(slots, slot); slots->items[at].slot; at = (at + 1) & slots->mask)
        if (slots->items[at].slot == slot)
            return &slots->items[at].value;
    return NULL;
}

static void put(struct call_times_slots *slots, uint64_t slot, uint64_t value)
{
    size_t at = home_of(slots, slot);
    while (slots->items[at].slot)
        at = (at + 1) & slots->mask;
    slots->items[at] = (struct call_times_slot){slot, value};
    slots->count++;
}

static bool grow(struct call_times_slots *slots)
{
    enum { FIRST = 256 };
    const struct call_times_slots old = *slots;
    const size_t capacity = old.items ? 2 * (old.mask + 1) : FIRST;
    struct call_times_slots grown = {.items = calloc(capacity, sizeof *grown.items), .mask = capacity - 1};
    if (!grown.items)
        return false;
    for (size_t i = 0; old.items && i <= old.mask; i++)
        if (old.items[i].slot)
            put(&grown, old.items[i].slot, old.items[i].value);
    free(old.items);
    *slots = grown;
    return true;
}

bool call_times_slots_set(struct call_times_slots *slots, uint64_t slot, uint64_t value)
{
    uint64_t *place = call_times_slots_find(slots, slot);
    if (place) {
        *place = value;
        return true;
    }
    if ((!slots->items || slots->count * 2 > slots->mask) && !grow(slots))
        return false;
    put(slots, key_of(slot), value);
    return true;
}

void call_times_slots_remove(struct call_times_slots *slots, uint64_t slot)
{
    slot = key_of(slot);
    if (!slots->items)
        return;
    size_t at = home_of(slots, slot);
    while (slots->items[at].slot != slot) {
        if (!slots->items[at].slot)
            return;
        at = (at + 1) & slots->mask;
    }
    slots->count--;
    for (size_t next = (at + 1) & slots->mask; slots->items[next].slot; next = (next + 1) & slots->mask) {
        const size_t home = home_of(slots, slots->items[next].slot);
        if (((next - home) & slots->mask) < ((next - at) & slots->mask))
            continue; // it may not stand before its home
        slots->items[at] = slots->items[next];
        at = next;
    }
    slots->items[at] = (struct call_times_slot){0};
}

void call_times_slots_free(struct call_times_slots *slots)
{
    free(slots->items);
    *slots = (struct call_times_slots){0};
}
