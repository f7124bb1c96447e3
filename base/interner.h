// SPDX-License-Identifier: Apache-2.0
// Strings, copied and each kept once: two are equal where their numbers, or their addresses, are.
#ifndef BASE_INTERNER_H
#define BASE_INTERNER_H

#include "base/hash_index.h"
#include "base/vector.h"

// Zeros are an empty one. Number 0 is the empty string.
struct base_interner {
    BASE_VECTOR_AS(const char *, texts); // by number; they stay where they are until base_interner_free
    struct base_hash_index index;
    struct base_interner_block *blocks; // the newest first
    bool has_failed;                    // no memory: numbers are 0 from then on
};

uint32_t base_interner_add(struct base_interner *strings, const char *text); // NULL is the empty string
// At most `size` bytes of the text: a NUL ends it.
uint32_t base_interner_add_part(struct base_interner *strings, const char *text, size_t size);
void base_interner_free(struct base_interner *strings);

static inline const char *base_interner_text(const struct base_interner *strings, uint32_t number)
{
    return number < strings->count ? strings->texts[number] : "";
}

#endif
