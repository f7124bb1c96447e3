// SPDX-License-Identifier: Apache-2.0
// Built without zlib: gzip all the same, of blocks that are stored as they are (RFC 1951, 3.2.4; RFC 1952).
#include <lzma.h>
#include <stdlib.h>

#include "tracer/export/sink/inside.h"

enum { STORED_MAX = 65535 };

struct sink_to_gzip {
    struct sink sink;
    struct sink *into;
    uint32_t checksum, size; // of all so far; the size modulo 2^32
};

static void put_little(struct sink *sink, uint32_t value, unsigned byte_count)
{
    for (unsigned i = 0; i < byte_count; i++)
        sink_bytes(sink, &(const uint8_t){(uint8_t)(value >> 8 * i)}, 1);
}

static void put_block(struct sink_to_gzip *gzip, const uint8_t *bytes, uint32_t size, bool is_last)
{
    put_little(gzip->into, is_last, 1);
    put_little(gzip->into, size, 2);
    put_little(gzip->into, ~size & 0xffff, 2);
    sink_bytes(gzip->into, bytes, size);
}

static void drain_gzip(struct sink *sink)
{
    struct sink_to_gzip *gzip = (struct sink_to_gzip *)sink;
    gzip->checksum = lzma_crc32(sink->bytes, sink->used, gzip->checksum); // gzip's, too
    gzip->size += (uint32_t)sink->used;
    for (size_t done = 0; done < sink->used; done += STORED_MAX) {
        size_t left = sink->used - done;
        put_block(gzip, sink->bytes + done, (uint32_t)(left < STORED_MAX ? left : STORED_MAX), false);
    }
    sink->used = 0;
    if (sink_failed(gzip->into))
        sink->has_failed = true; // the error is there
}

static int close_gzip(struct sink *sink, bool keep, struct base_error *error)
{
    struct sink_to_gzip *gzip = (struct sink_to_gzip *)sink;
    struct sink *into = gzip->into;
    if (keep) {
        drain_gzip(sink);
        put_block(gzip, sink->bytes, 0, true);
        put_little(into, gzip->checksum, 4);
        put_little(into, gzip->size, 4);
    }
    free(sink->bytes);
    free(gzip);
    return sink_close(into, keep, error);
}

struct sink *sink_gzip(struct sink *into)
{
    static const uint8_t head[] = {0x1f, 0x8b, 8, 0, 0, 0, 0, 0, 0, 3}; // deflate, no time, Unix
    struct sink_to_gzip *gzip = calloc(1, sizeof *gzip);
    if (!gzip || !sink_begin(&gzip->sink, drain_gzip, close_gzip)) {
        free(gzip);
        return NULL;
    }
    gzip->into = into;
    sink_bytes(into, head, sizeof head);
    return &gzip->sink;
}
