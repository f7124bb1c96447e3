// SPDX-License-Identifier: Apache-2.0
#include <string.h>

#include "libqut/segment/atomics_inline.h"
#include "libqut/segment/segment.h"

enum { PLACES_MAX = 64, LENGTH_BYTES = 2, ALIGNMENT = 4 };

static uint32_t hash_of(const char *text, size_t length)
{
    uint32_t hash = 0x811c9dc5;
    for (size_t i = 0; i < length; i++)
        hash = (hash ^ (uint8_t)text[i]) * 0x01000193;
    return (hash ^ hash >> 15) * 0x9e3779b1u >> 3;
}

static bool is_string(const struct segment *segment, uint32_t id, const char *text, size_t length)
{
    uint64_t offset = (uint64_t)id * ALIGNMENT;
    if (offset + LENGTH_BYTES + length + 1 > segment->string_bytes)
        return false;
    const uint8_t *at = segment->strings + offset;
    return (size_t)(at[0] | at[1] << 8) == length && memcmp(at + LENGTH_BYTES, text, length) == 0;
}

// Room for it, its own for ever; or 0.
static uint32_t put_string(struct segment *segment, const char *text, size_t length)
{
    uint32_t size = (uint32_t)(LENGTH_BYTES + length + 1 + ALIGNMENT - 1) & ~(uint32_t)(ALIGNMENT - 1);
    uint32_t *used_bytes = &segment->header->string_used_bytes, used = segment_get32(used_bytes);
    do {
        if (used > segment->string_bytes || size > segment->string_bytes - used)
            return 0;
    } while (!__atomic_compare_exchange_n(used_bytes, &used, used + size, true, __ATOMIC_RELAXED, __ATOMIC_RELAXED));
    uint8_t *at = segment->strings + used;
    at[0] = (uint8_t)length;
    at[1] = (uint8_t)(length >> 8);
    memcpy(at + LENGTH_BYTES, text, length);
    at[LENGTH_BYTES + length] = 0;
    return used / ALIGNMENT;
}

uint32_t segment_string(struct segment *segment, const char *text, size_t length)
{
    if (length > QUT_TRACE_STRING_BYTES_MAX)
        length = QUT_TRACE_STRING_BYTES_MAX;
    if (length == 0)
        return 0;
    uint32_t first = hash_of(text, length), put = 0;
    for (uint32_t i = 0; i < PLACES_MAX; i++) {
        uint32_t *place = &segment->string_index[(first + i) & segment->string_index_mask];
        uint32_t there = __atomic_load_n(place, __ATOMIC_ACQUIRE);
        if (there == 0) {
            if (!put && !(put = put_string(segment, text, length)))
                return 0;
            // Release: a reader that finds the id finds the text.
            if (__atomic_compare_exchange_n(place, &there, put + 1, false, __ATOMIC_ACQ_REL, __ATOMIC_ACQUIRE))
                return put;
        }
        // Another thread may have put the same just now; then what was put here is never used.
        if (is_string(segment, there - 1, text, length))
            return there - 1;
    }
    return 0;
}
