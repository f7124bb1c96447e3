// SPDX-License-Identifier: Apache-2.0
#include "tracer/report/bytes.h"

#include <stdlib.h>
#include <string.h>

enum { FIRST_CAPACITY = 4096, VARINT_BYTES_MAX = 10 };

static bool make_room(struct bytes *bytes, size_t size)
{
    if (bytes->has_failed || size > SIZE_MAX / 4 || bytes->size > SIZE_MAX / 4)
        bytes->has_failed = true;
    if (bytes->has_failed)
        return false;
    if (bytes->size + size <= bytes->capacity)
        return true;
    size_t capacity = bytes->capacity ? bytes->capacity : FIRST_CAPACITY;
    while (capacity < bytes->size + size)
        capacity *= 2;
    uint8_t *data = realloc(bytes->data, capacity);
    if (!data) {
        bytes->has_failed = true;
        return false;
    }
    bytes->data = data;
    bytes->capacity = capacity;
    return true;
}

void bytes_add(struct bytes *bytes, const void *data, size_t size)
{
    if (size == 0 || !make_room(bytes, size))
        return;
    memcpy(bytes->data + bytes->size, data, size);
    bytes->size += size;
}

void bytes_varint(struct bytes *bytes, uint64_t value)
{
    if (!make_room(bytes, VARINT_BYTES_MAX))
        return;
    for (; value >= 0x80; value >>= 7)
        bytes->data[bytes->size++] = (uint8_t)(value | 0x80);
    bytes->data[bytes->size++] = (uint8_t)value;
}

void bytes_zigzag(struct bytes *bytes, int64_t value)
{
    bytes_varint(bytes, (uint64_t)value << 1 ^ (value < 0 ? UINT64_MAX : 0));
}

void bytes_free(struct bytes *bytes)
{
    free(bytes->data);
    *bytes = (struct bytes){0};
}
