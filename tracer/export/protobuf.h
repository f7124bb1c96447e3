// SPDX-License-Identifier: Apache-2.0
// Protocol buffer messages, written one after the other into a buffer that is emptied into a sink when it is full
// enough. A message's length stands before it: it gets one byte, and where that is too little, what came behind it is
// moved when the message ends.
#ifndef TRACER_EXPORT_PROTOBUF_H
#define TRACER_EXPORT_PROTOBUF_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/vector.h"
#include "tracer/export/sink/sink.h"

struct protobuf {
    struct sink *sink;
    BASE_VECTOR(uint8_t);
    bool failed; // no memory: nothing is written any more
};

enum protobuf_wire { PROTOBUF_VARINT = 0, PROTOBUF_FIXED64 = 1, PROTOBUF_LENGTH = 2 };
enum { PROTOBUF_NUMBER_BYTES_MAX = 20 }; // a tag and a number

// Room for `more` bytes. False: failed.
bool export_protobuf_grow(struct protobuf *out, size_t more);
// What is in the buffer goes to the sink, if it is much or `now`. Between outermost messages only.
void export_protobuf_flush(struct protobuf *out, bool now);
void export_protobuf_free(struct protobuf *out);

void export_protobuf_bytes(struct protobuf *out, unsigned field, const void *bytes, size_t size);
// As UTF-8: what is none becomes U+FFFD.
void export_protobuf_text(struct protobuf *out, unsigned field, const char *text);

// A message, which lasts until export_protobuf_end, that gets what this returns.
size_t export_protobuf_begin(struct protobuf *out, unsigned field);
void export_protobuf_end(struct protobuf *out, size_t begin);

static inline bool export_protobuf_has_room(struct protobuf *out, size_t more)
{
    return out->capacity - out->count >= more || export_protobuf_grow(out, more);
}

// Without looking for room.
static inline uint8_t *export_protobuf_put_number(uint8_t *at, uint64_t value)
{
    while (value >= 0x80) {
        *at++ = (uint8_t)(value | 0x80);
        value >>= 7;
    }
    *at++ = (uint8_t)value;
    return at;
}

static inline uint8_t *export_protobuf_put_tag(uint8_t *at, unsigned field, enum protobuf_wire wire)
{
    return export_protobuf_put_number(at, (uint64_t)field << 3 | wire);
}

// The number alone, as in packed fields.
static inline void export_protobuf_bare_number(struct protobuf *out, uint64_t value)
{
    if (!export_protobuf_has_room(out, PROTOBUF_NUMBER_BYTES_MAX))
        return;
    out->count = (size_t)(export_protobuf_put_number(out->items + out->count, value) - out->items);
}

static inline void export_protobuf_number(struct protobuf *out, unsigned field, uint64_t value)
{
    if (!export_protobuf_has_room(out, PROTOBUF_NUMBER_BYTES_MAX))
        return;
    uint8_t *at = export_protobuf_put_tag(out->items + out->count, field, PROTOBUF_VARINT);
    out->count = (size_t)(export_protobuf_put_number(at, value) - out->items);
}

static inline void export_protobuf_fixed64(struct protobuf *out, unsigned field, uint64_t value)
{
    if (!export_protobuf_has_room(out, PROTOBUF_NUMBER_BYTES_MAX))
        return;
    uint8_t *at = export_protobuf_put_tag(out->items + out->count, field, PROTOBUF_FIXED64);
    for (unsigned i = 0; i < 8; i++)
        *at++ = (uint8_t)(value >> 8 * i);
    out->count = (size_t)(at - out->items);
}

#endif
