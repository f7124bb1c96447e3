// SPDX-License-Identifier: Apache-2.0
#include "tracer/report/bytes.h"

#include <string.h>

enum { VARINT_BYTES_MAX = 10 };

static bool make_room(struct bytes *bytes, size_t size)
{
    bytes->has_failed = bytes->has_failed || !BASE_RESERVE(bytes, size);
    return !bytes->has_failed;
}

void report_bytes_add(struct bytes *bytes, const void *data, size_t size)
{
    if (size == 0 || !make_room(bytes, size))
        return;
    memcpy(bytes->items + bytes->count, data, size);
    bytes->count += size;
}

void report_bytes_varint(struct bytes *bytes, uint64_t value)
{
    if (!make_room(bytes, VARINT_BYTES_MAX))
        return;
    for (; value >= 0x80; value >>= 7)
        bytes->items[bytes->count++] = (uint8_t)(value | 0x80);
    bytes->items[bytes->count++] = (uint8_t)value;
}

void report_bytes_zigzag(struct bytes *bytes, int64_t value)
{
    report_bytes_varint(bytes, (uint64_t)value << 1 ^ (value < 0 ? UINT64_MAX : 0));
}

void report_bytes_free(struct bytes *bytes)
{
    base_vector_free(&bytes->vector);
    *bytes = (struct bytes){0};
}
