// SPDX-License-Identifier: Apache-2.0
#ifndef QUT_V8_INSIDE_H
#define QUT_V8_INSIDE_H

#include <string.h>

#include "libqut/v8/v8.h"

// A word that refers to an object has 01 as its lowest bits; one that is a small number has 0, and the number in its
// upper half.
enum { V8_OBJECT_TAG = 1, V8_TAG_MASK = 3, V8_NUMBER_SHIFT = 32 };

static inline uint64_t v8_word(const uint8_t *bytes, size_t offset)
{
    uint64_t word;
    memcpy(&word, bytes + offset, sizeof word);
    return word;
}

static inline uint32_t v8_half(const uint8_t *bytes, size_t offset)
{
    uint32_t half;
    memcpy(&half, bytes + offset, sizeof half);
    return half;
}

// The address of an object that a word refers to; 0: it refers to none.
static inline uint64_t v8_object(uint64_t word)
{
    return (word & V8_TAG_MASK) == V8_OBJECT_TAG && word >= 4096 && word >> 48 == 0 && (word - V8_OBJECT_TAG) % 8 == 0
               ? word - V8_OBJECT_TAG
               : 0;
}

static inline bool v8_is_smi(uint64_t word)
{
    return (uint32_t)word == 0;
}

static inline int32_t v8_smi(uint64_t word)
{
    return (int32_t)(uint32_t)(word >> V8_NUMBER_SHIFT);
}

// The type of an object whose first word is that.
int32_t v8_type_of_map(const struct v8_layout *layout, const struct elf_art_memory *memory, uint64_t map);

// An object's first bytes. Where it was moved just now, its first word is where it is: *address becomes that.
bool v8_read_object(const struct elf_art_memory *memory, uint64_t *address, void *bytes, size_t size);

// Where a scope has its function's name, or the name that the machine made for it, by its first bytes; 0: it has none.
// What is no scope has none that is one.
size_t v8_scope_name_at(const struct v8_layout *layout, const uint8_t *bytes, size_t size);

#endif
