// SPDX-License-Identifier: Apache-2.0
#include "tracer/trace/file_columns.h"

enum { WORD_BYTES = 8 };

size_t trace_columns_write(uint8_t *to, const uint32_t *indices, const uint64_t *words, size_t count)
{
    uint32_t head[2] = {(uint32_t)count, 0};
    memcpy(to, head, sizeof head);
    uint8_t *at = to + sizeof head;
    for (unsigned byte = 0; byte < WORD_BYTES; byte++)
        for (size_t i = 0; i < count; i++)
            *at++ = (uint8_t)(words[i] >> (8 * byte));
    uint32_t before = 0;
    for (size_t i = 0; i < count; i++) {
        uint32_t distance = indices[i] - before;
        before = indices[i];
        for (; distance >= 0x80; distance >>= 7)
            *at++ = (uint8_t)(distance | 0x80);
        *at++ = (uint8_t)distance;
    }
    return (size_t)(at - to);
}

bool trace_columns_read(struct base_bytes bytes, uint64_t *words, size_t capacity, size_t *end)
{
    struct base_cursor cursor = base_cursor(bytes);
    uint32_t count = base_read_u32(&cursor);
    base_read_u32(&cursor);
    struct base_bytes columns = base_read_bytes(&cursor, (uint64_t)count * WORD_BYTES);
    uint64_t index = 0;
    for (size_t i = 0; i < count && !cursor.failed; i++) {
        index += base_read_uleb(&cursor) & UINT32_MAX;
        if (cursor.failed || index == 0 || index >= capacity)
            return false;
        uint64_t word = 0;
        for (unsigned byte = 0; byte < WORD_BYTES; byte++)
            word |= (uint64_t)columns.data[byte * (size_t)count + i] << (8 * byte);
        words[index] = word;
        *end = index >= *end ? (size_t)index + 1 : *end;
    }
    return !cursor.failed && base_cursor_left(&cursor) == 0;
}

void trace_planes_write(uint8_t *to, const void *items, size_t count, size_t item_bytes)
{
    const uint8_t *from = items;
    for (size_t i = 0; i < count; i++)
        for (size_t byte = 0; byte < item_bytes; byte++)
            to[byte * count + i] = from[i * item_bytes + byte];
}

void trace_planes_read(void *items, const uint8_t *from, size_t count, size_t item_bytes)
{
    uint8_t *to = items;
    for (size_t i = 0; i < count; i++)
        for (size_t byte = 0; byte < item_bytes; byte++)
            to[i * item_bytes + byte] = from[byte * count + i];
}
