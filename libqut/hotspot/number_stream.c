// SPDX-License-Identifier: Apache-2.0
// UNSIGNED5, as the machine's sources say: up to five digits, the lowest first. A byte below 192 ends a number; each
// digit above counts 64 times as much as the one before. From JDK 20 on a byte of 0 is no digit, and the others are one
// more.
#include "libqut/hotspot/inside.h"

enum {
    DIGITS_MAX = 5,
    DIGIT_BITS = 6,
    HIGH_FROM = 192, // another digit follows
};

void hotspot_stream_begin(struct hotspot_stream *stream, const struct elf_art_memory *memory, uint64_t at, uint64_t end,
                          bool has_digits_from_one)
{
    *stream =
        (struct hotspot_stream){.memory = memory, .at = at, .end = end, .has_digits_from_one = has_digits_from_one};
}

uint8_t hotspot_stream_byte(struct hotspot_stream *stream)
{
    uint64_t at = stream->at;
    if (stream->is_bad || at >= stream->end) {
        stream->is_bad = true;
        return 0;
    }
    if (at - stream->first >= stream->count) {
        uint64_t left = stream->end - at;
        size_t size = left < HOTSPOT_STREAM_BYTES ? (size_t)left : HOTSPOT_STREAM_BYTES;
        stream->first = at;
        stream->count = stream->memory->read(stream->memory->context, at, stream->bytes, size);
        if (stream->count == 0) {
            stream->is_bad = true;
            return 0;
        }
    }
    stream->at++;
    return stream->bytes[at - stream->first];
}

uint32_t hotspot_stream_number(struct hotspot_stream *stream)
{
    uint32_t number = 0, excluded = stream->has_digits_from_one;
    for (unsigned i = 0; i < DIGITS_MAX; i++) {
        uint32_t digit = hotspot_stream_byte(stream);
        if (digit < excluded)
            stream->is_bad = true;
        if (stream->is_bad)
            return 0;
        number += (digit - excluded) << (i * DIGIT_BITS);
        if (digit < HIGH_FROM)
            break;
    }
    return number;
}

// The lowest bit is the sign.
int32_t hotspot_stream_signed(struct hotspot_stream *stream)
{
    uint32_t number = hotspot_stream_number(stream);
    return (int32_t)(number >> 1 ^ (0 - (number & 1)));
}
