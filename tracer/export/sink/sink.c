// SPDX-License-Identifier: Apache-2.0
#include <stdlib.h>
#include <string.h>

#include "tracer/export/sink/inside.h"

bool sink_begin(struct sink *sink, void (*drain)(struct sink *), int (*close)(struct sink *, bool, struct base_error *))
{
    *sink = (struct sink){.bytes = malloc(SINK_ROOM), .room = SINK_ROOM, .drain = drain, .close = close};
    return sink->bytes != NULL;
}

void sink_fail(struct sink *sink, enum base_reason reason, const char *what, int error_number)
{
    if (!sink->has_failed)
        base_fail(&sink->error, reason, "", 0, "%s%s%s", what, error_number ? ": " : "",
                  error_number ? strerror(error_number) : "");
    sink->has_failed = true;
}

void sink_no_memory(struct sink *sink)
{
    sink_fail(sink, BASE_ERR_NO_MEMORY, "", 0);
}

// Memory doubles.
static void grow(struct sink *sink, size_t size)
{
    size_t room = sink->room;
    while (room - sink->used < size && room <= SIZE_MAX / 2)
        room *= 2;
    uint8_t *bytes = room - sink->used < size ? NULL : realloc(sink->bytes, room);
    if (!bytes) {
        sink_fail(sink, BASE_ERR_NO_MEMORY, "output", 0);
        return;
    }
    sink->bytes = bytes;
    sink->room = room;
}

uint8_t *sink_room(struct sink *sink, size_t size)
{
    if (sink->room - sink->used < size && !sink->has_failed) {
        if (sink->drain)
            sink->drain(sink);
        else
            grow(sink, size);
    }
    return sink->has_failed ? NULL : sink->bytes + sink->used;
}

void sink_bytes(struct sink *sink, const void *bytes, size_t size)
{
    const uint8_t *from = bytes;
    while (size) {
        size_t piece = size < SINK_ROOM ? size : SINK_ROOM;
        uint8_t *room = sink_room(sink, piece);
        if (!room)
            return;
        memcpy(room, from, piece);
        sink->used += piece;
        from += piece;
        size -= piece;
    }
}

static int close_memory(struct sink *sink, bool keep, struct base_error *error)
{
    (void)keep;
    bool has_failed = sink->has_failed;
    if (has_failed && error)
        *error = sink->error;
    free(sink->bytes);
    free(sink);
    return has_failed ? -1 : 0;
}

struct sink *sink_in_memory(void)
{
    struct sink *sink = malloc(sizeof *sink);
    if (sink && !sink_begin(sink, NULL, close_memory)) {
        free(sink);
        sink = NULL;
    }
    return sink;
}

void sink_empty(struct sink *sink)
{
    sink->used = 0;
}

const uint8_t *sink_memory(const struct sink *sink, size_t *size)
{
    *size = sink->used;
    return sink->bytes;
}

bool sink_failed(const struct sink *sink)
{
    return sink->has_failed;
}

int sink_close(struct sink *sink, bool keep, struct base_error *error)
{
    return sink->close(sink, keep && !sink->has_failed, error);
}
