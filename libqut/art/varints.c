// SPDX-License-Identifier: Apache-2.0
#include "libqut/art/varints.h"

enum { INLINE_MAX = 11 };

struct bits {
    const uint8_t *bytes;
    size_t size, at; // at: in bits
    bool failed;
};

static uint32_t read_bits(struct bits *bits, unsigned count)
{
    uint32_t value = 0;
    if (bits->at + count > bits->size * 8) {
        bits->failed = true;
        return 0;
    }
    for (unsigned i = 0; i < count; i++, bits->at++)
        value |= (uint32_t)(bits->bytes[bits->at / 8] >> (bits->at % 8) & 1) << i;
    return value;
}

static void read_wide(struct bits *bits, uint32_t *value)
{
    if (*value > INLINE_MAX)
        *value = read_bits(bits, (*value - INLINE_MAX) * 8);
}

bool art_read_varints(const uint8_t *bytes, size_t size, bool interleaved, uint32_t *values, unsigned count)
{
    struct bits bits = {.bytes = bytes, .size = size};
    for (unsigned i = 0; i < count; i++) {
        values[i] = read_bits(&bits, 4);
        if (!interleaved)
            read_wide(&bits, &values[i]);
    }
    for (unsigned i = 0; interleaved && i < count; i++)
        read_wide(&bits, &values[i]);
    return !bits.failed;
}
