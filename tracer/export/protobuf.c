// SPDX-License-Identifier: Apache-2.0
#include "tracer/export/protobuf.h"

#include <stdlib.h>
#include <string.h>

#include "base/utf8_inline.h"

enum { MUCH_BYTES = 32 << 10 };

bool export_protobuf_grow(struct protobuf *out, size_t more)
{
    if (out->failed)
        return false;
    if (BASE_RESERVE(out, more))
        return true;
    out->failed = true;
    out->count = out->capacity; // there is no room, whatever is asked for
    return false;
}

void export_protobuf_flush(struct protobuf *out, bool now)
{
    if (out->failed || !(now || out->count >= MUCH_BYTES))
        return;
    sink_bytes(out->sink, out->items, out->count);
    out->count = 0;
}

void export_protobuf_free(struct protobuf *out)
{
    base_vector_free(&out->vector);
    *out = (struct protobuf){.sink = out->sink};
}

void export_protobuf_bytes(struct protobuf *out, unsigned field, const void *bytes, size_t size)
{
    if (size > SIZE_MAX / 4 || !export_protobuf_has_room(out, size + PROTOBUF_NUMBER_BYTES_MAX))
        return;
    uint8_t *at = export_protobuf_put_tag(out->items + out->count, field, PROTOBUF_LENGTH);
    at = export_protobuf_put_number(at, size);
    if (size)
        memcpy(at, bytes, size);
    out->count = (size_t)(at - out->items) + size;
}

static void add_raw(struct protobuf *out, const void *bytes, size_t size)
{
    if (!export_protobuf_has_room(out, size))
        return;
    memcpy(out->items + out->count, bytes, size);
    out->count += size;
}

void export_protobuf_text(struct protobuf *out, unsigned field, const char *text)
{
    size_t good = 0;
    for (size_t length; (length = base_utf8_sequence(text + good)) > 0;)
        good += length;
    if (!text[good]) {
        export_protobuf_bytes(out, field, text, good);
        return;
    }
    size_t begin = export_protobuf_begin(out, field);
    while (*text) {
        size_t length = base_utf8_sequence(text);
        add_raw(out, length ? text : UTF8_REPLACEMENT, length ? length : strlen(UTF8_REPLACEMENT));
        text += length ? length : 1;
    }
    export_protobuf_end(out, begin);
}

size_t export_protobuf_begin(struct protobuf *out, unsigned field)
{
    if (!export_protobuf_has_room(out, PROTOBUF_NUMBER_BYTES_MAX))
        return 0;
    out->count = (size_t)(export_protobuf_put_tag(out->items + out->count, field, PROTOBUF_LENGTH) - out->items) + 1;
    return out->count;
}

void export_protobuf_end(struct protobuf *out, size_t begin)
{
    if (out->failed)
        return;
    size_t size = out->count - begin;
    if (size < 0x80) {
        out->items[begin - 1] = (uint8_t)size;
        return;
    }
    uint8_t length[PROTOBUF_NUMBER_BYTES_MAX];
    size_t more = (size_t)(export_protobuf_put_number(length, size) - length) - 1;
    if (!export_protobuf_has_room(out, more))
        return;
    memmove(out->items + begin + more, out->items + begin, size);
    memcpy(out->items + begin - 1, length, more + 1);
    out->count += more;
}
