// SPDX-License-Identifier: Apache-2.0
// A hash table from things in somebody's array to their numbers in it: the things stay where they are.
#ifndef TRACER_NAMES_INDEX_H
#define TRACER_NAMES_INDEX_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct names_index_slot {
    uint32_t hash;
    uint32_t item; // + 1; 0: free
};

struct names_index {
    struct names_index_slot *slots;
    size_t capacity; // a power of two, or 0
    size_t count;
};

// Whether an item is the one that is looked for.
typedef bool (*names_equal_fn)(const void *context, uint32_t item);

#define NAMES_INDEX_NONE UINT32_MAX

// The item, or NAMES_INDEX_NONE.
uint32_t names_index_find(const struct names_index *index, uint64_t hash, names_equal_fn equal, const void *context);
// Of what is not in it yet. False without memory.
bool names_index_add(struct names_index *index, uint64_t hash, uint32_t item);
void names_index_free(struct names_index *index);

// Spreads whatever is in the bits of a number over all of them.
static inline uint64_t names_mix(uint64_t value)
{
    value = (value ^ (value >> 32)) * 0xd6e8feb86659fd93u;
    value = (value ^ (value >> 32)) * 0xd6e8feb86659fd93u;
    return value ^ (value >> 32);
}

#endif
