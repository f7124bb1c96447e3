// SPDX-License-Identifier: Apache-2.0
#include "tracer/export/protobuf.h"

#include <stdlib.h>
#include <string.h>

#include "tracer/export/utf8.h"

enum { MUCH_BYTES = 32 << 10, FIRST_ROOM_BYTES = 64 << 10 };

bool protobuf_grow(struct protobuf *out, size_t more)
{
    if (out->failed)
        return false;
    size_t room = out->room ? out->room : FIRST_ROOM_BYTES;
    while (room - out->size < more && room <= SIZE_MAX / 4)
        room *= 2;
    uint8_t *data = room - out->size < more ? NULL : realloc(out->data, room);
    if (!data) {
        out->failed = true;
        out->size = out->room; // there is no room, whatever is asked for
        return false;
    }
    out->data = data;
    out->room = room;
    return true;
}

void protobuf_flush(struct protobuf *out, bool now)
{
    if (out->failed || !(now || out->size >= MUCH_BYTES))
        return;
    sink_bytes(out->sink, out->data, out->size);
    out->size = 0;
}

void protobuf_free(struct protobuf *out)
{
    free(out->data);
    *out = (struct protobuf){.sink = out->sink};
}

void protobuf_bytes(struct protobuf *out, unsigned field, const void *bytes, size_t size)
{
    if (size > SIZE_MAX / 4 || !protobuf_has_room(out, size + PROTOBUF_NUMBER_BYTES_MAX))
        return;
    uint8_t *at = protobuf_put_tag(out->data + out->size, field, PROTOBUF_LENGTH);
    at = protobuf_put_number(at, size);
    if (size)
        memcpy(at, bytes, size);
    out->size = (size_t)(at - out->data) + size;
}

static void add_raw(struct protobuf *out, const void *bytes, size_t size)
{
    if (!protobuf_has_room(out, size))
        return;
    memcpy(out->data + out->size, bytes, size);
    out->size += size;
}

void protobuf_text(struct protobuf *out, unsigned field, const char *text)
{
    size_t good = 0;
    for (size_t length; (length = utf8_sequence(text + good)) > 0;)
        good += length;
    if (!text[good]) {
        protobuf_bytes(out, field, text, good);
        return;
    }
    size_t begin = protobuf_begin(out, field);
    while (*text) {
        size_t length = utf8_sequence(text);
        add_raw(out, length ? text : UTF8_REPLACEMENT, length ? length : strlen(UTF8_REPLACEMENT));
        text += length ? length : 1;
    }
    protobuf_end(out, begin);
}

size_t protobuf_begin(struct protobuf *out, unsigned field)
{
    if (!protobuf_has_room(out, PROTOBUF_NUMBER_BYTES_MAX))
        return 0;
    out->size = (size_t)(protobuf_put_tag(out->data + out->size, field, PROTOBUF_LENGTH) - out->data) + 1;
    return out->size;
}

void protobuf_end(struct protobuf *out, size_t begin)
{
    if (out->failed)
        return;
    size_t size = out->size - begin;
    if (size < 0x80) {
        out->data[begin - 1] = (uint8_t)size;
        return;
    }
    uint8_t length[PROTOBUF_NUMBER_BYTES_MAX];
    size_t more = (size_t)(protobuf_put_number(length, size) - length) - 1;
    if (!protobuf_has_room(out, more))
        return;
    memmove(out->data + begin + more, out->data + begin, size);
    memcpy(out->data + begin - 1, length, more + 1);
    out->size += more;
}
