// SPDX-License-Identifier: Apache-2.0
#include <string.h>

#include "tracer/parquet/inside.h"

uint8_t *parquet_room(struct parquet_bytes *bytes, size_t size)
{
    if (bytes->has_failed || !BASE_RESERVE(bytes, size)) {
        bytes->has_failed = true;
        return NULL;
    }
    uint8_t *at = bytes->items + bytes->count;
    bytes->count += size;
    return at;
}

void parquet_put(struct parquet_bytes *bytes, const void *from, size_t size)
{
    uint8_t *at = size ? parquet_room(bytes, size) : NULL;
    if (at)
        memcpy(at, from, size);
}

void parquet_put_little(struct parquet_bytes *bytes, uint64_t value, unsigned size)
{
    uint8_t *at = size ? parquet_room(bytes, size) : NULL;
    for (unsigned i = 0; at && i < size; i++)
        at[i] = (uint8_t)(value >> (8 * i));
}

void parquet_put_varint(struct parquet_bytes *bytes, uint64_t value)
{
    uint8_t text[10];
    size_t size = 0;
    for (; value >= 0x80; value >>= 7)
        text[size++] = (uint8_t)(value | 0x80);
    text[size++] = (uint8_t)value;
    parquet_put(bytes, text, size);
}

void parquet_put_zigzag(struct parquet_bytes *bytes, int64_t value)
{
    parquet_put_varint(bytes, (uint64_t)value << 1 ^ (uint64_t)(value >> 63));
}
