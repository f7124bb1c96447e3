// SPDX-License-Identifier: Apache-2.0
#include <stdlib.h>
#include <zlib.h>

#include "tracer/export/sink/inside.h"

// A block has 2,048 symbols at most, and so codes of its own: a profile's tables are of different kinds, one behind the
// other. Blocks of 32,768 made windows of a minute 3 to 8 % longer; of what is large and all alike they save 1 %.
enum { GZIP_WINDOW = 15 + 16, MEMORY_LEVEL = 5 }; // + 16: with the header of gzip

struct sink_to_gzip {
    struct sink sink;
    struct sink *into;
    z_stream stream;
};

static void compress_bytes(struct sink_to_gzip *gzip, int flush)
{
    uint8_t out[16384];
    gzip->stream.next_in = gzip->sink.bytes;
    gzip->stream.avail_in = (uInt)gzip->sink.used; // at most SINK_ROOM
    int status;
    do {
        gzip->stream.next_out = out;
        gzip->stream.avail_out = sizeof out;
        status = deflate(&gzip->stream, flush);
        sink_bytes(gzip->into, out, sizeof out - gzip->stream.avail_out);
    } while (gzip->stream.avail_out == 0 && status != Z_STREAM_END);
    gzip->sink.used = 0;
    if (sink_failed(gzip->into))
        gzip->sink.has_failed = true; // the error is there
}

static void drain_gzip(struct sink *sink)
{
    compress_bytes((struct sink_to_gzip *)sink, Z_NO_FLUSH);
}

static int close_gzip(struct sink *sink, bool keep, struct base_error *error)
{
    struct sink_to_gzip *gzip = (struct sink_to_gzip *)sink;
    if (keep)
        compress_bytes(gzip, Z_FINISH);
    deflateEnd(&gzip->stream);
    struct sink *into = gzip->into;
    free(sink->bytes);
    free(gzip);
    return sink_close(into, keep, error);
}

struct sink *sink_gzip(struct sink *into)
{
    struct sink_to_gzip *gzip = calloc(1, sizeof *gzip);
    if (!gzip)
        return NULL;
    if (!sink_begin(&gzip->sink, drain_gzip, close_gzip))
        goto no_memory;
    if (deflateInit2(&gzip->stream, Z_DEFAULT_COMPRESSION, Z_DEFLATED, GZIP_WINDOW, MEMORY_LEVEL, Z_DEFAULT_STRATEGY) !=
        Z_OK)
        goto no_memory;
    gzip->into = into;
    return &gzip->sink;
no_memory:
    free(gzip->sink.bytes);
    free(gzip);
    return NULL;
}
