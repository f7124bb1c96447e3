// SPDX-License-Identifier: Apache-2.0
// From keys to numbers: the numbers are places in an array of the caller's, where the keys stay. The index knows hashes
// alone; which of the things with a hash is the right one, the caller's loop says:
//
//   for (uint32_t step = 0, i; (i = base_hash_next(&index, hash, &step)) != BASE_HASH_NONE;)
//       if (items[i].key == key)
//           return i;
#ifndef BASE_HASH_INDEX_H
#define BASE_HASH_INDEX_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#define BASE_HASH_NONE UINT32_MAX

struct base_hash_slot {
    uint32_t hash;
    uint32_t number; // + 1; 0: free
};

// Zeros are an empty one.
struct base_hash_index {
    struct base_hash_slot *slots; // a power of two of them, at most half full
    uint32_t mask;                // their count less one
    uint32_t count;
};

// The next number under a hash, each once, in no order; *step is 0 at first.
static inline uint32_t base_hash_next(const struct base_hash_index *index, uint64_t hash, uint32_t *step)
{
    while (index->slots) {
        const struct base_hash_slot *slot = &index->slots[((uint32_t)hash + (*step)++) & index->mask];
        if (!slot->number)
            break;
        if (slot->hash == (uint32_t)hash)
            return slot->number - 1;
    }
    return BASE_HASH_NONE;
}

// False: no memory, or more than 2^30 things. The index is then as it was.
bool base_hash_add(struct base_hash_index *index, uint64_t hash, uint32_t number);
// Room for `count` things in all.
bool base_hash_reserve(struct base_hash_index *index, size_t count);
void base_hash_clear(struct base_hash_index *index); // its room stays
void base_hash_free(struct base_hash_index *index);

// The hash of a key: of its words one by one, beginning with 0, each into the hash of those before it. Of two short
// words one is shifted beside the other: were it where the hash begins, many pairs would have the same.
static inline uint64_t base_hash_word(uint64_t hash, uint64_t word)
{
    hash = (hash ^ word) * 0x9e3779b97f4a7c15u;
    return hash ^ hash >> 31;
}

static inline uint64_t base_hash_bytes(uint64_t hash, const void *bytes, size_t size)
{
    const uint8_t *at = bytes;
    uint64_t word;
    for (; size >= sizeof word; at += sizeof word, size -= sizeof word) {
        memcpy(&word, at, sizeof word);
        hash = base_hash_word(hash, word);
    }
    word = 0;
    if (size)
        memcpy(&word, at, size);
    return size ? base_hash_word(hash, word ^ (uint64_t)size << 56) : hash;
}

#endif
