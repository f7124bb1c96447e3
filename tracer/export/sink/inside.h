// SPDX-License-Identifier: Apache-2.0
// What the kinds of sinks and the writers share.
#ifndef TRACER_EXPORT_SINK_INSIDE_H
#define TRACER_EXPORT_SINK_INSIDE_H

#include "tracer/export/sink/sink.h"

struct sink {
    uint8_t *bytes;
    size_t used, room;
    // Takes all that is in `bytes`, and sets `used` to 0. Memory has none: its bytes grow.
    void (*drain)(struct sink *sink);
    // Says what the last bytes are; the sink is gone afterwards. Returns as sink_close.
    int (*close)(struct sink *sink, bool keep, struct base_error *error);
    bool has_failed;
    bool is_synced;          // sink_sync
    struct base_error error; // the first
};

// Of a sink that begins a larger structure, allocated with malloc. False: no memory.
bool sink_begin(struct sink *sink, void (*drain)(struct sink *),
                int (*close)(struct sink *, bool, struct base_error *));
void sink_fail(struct sink *sink, enum base_reason reason, const char *what, int error_number);
// Room for so many bytes, at most SINK_ROOM, at the returned place, to be added to `used`. NULL: it has failed.
uint8_t *sink_room(struct sink *sink, size_t size);

enum { SINK_ROOM = 1 << 16 };

#endif
