// SPDX-License-Identifier: Apache-2.0
// Records of a chunk in streams, as settled .qtrace files have them: nodes, times, processor times, and all the rest.
// What is alike packs well where nothing else stands between. And the blocks that have them.
#ifndef TRACER_TRACE_FILE_RECORDS_H
#define TRACER_TRACE_FILE_RECORDS_H

#include "base/cursor_inline.h"
#include "formats/qut_trace_file.h"
#include "tracer/trace/raw_trace.h"

// An id in the segment -> its id in the tree; 0: none (but for the root).
struct trace_node_ids {
    const uint32_t *of;
    size_t count;
};

// Where the streams go on.
struct trace_records_out {
    uint8_t *streams[QUT_TRACE_FILE_STREAM_COUNT];
    uint32_t last_node;
};
struct trace_records_in {
    struct base_cursor streams[QUT_TRACE_FILE_STREAM_COUNT]; // of REST only this chunk's
    uint32_t last_node;
};

// Takes records apart; no stream gets more than four times their bytes. False: they are malformed, or name a node that
// has no id.
bool trace_records_split(struct trace_records_out *to, struct base_bytes records, bool has_cpu_time,
                         const struct trace_node_ids *ids);
// Puts a chunk's records together from *end on, which grows by at most four times what was read. False: malformed.
bool trace_records_join(struct trace_records_in *from, bool has_cpu_time, uint8_t **end);

// Adds the chunks of a block of type CHUNK_PLANES to the image, as if they had been in a segment whose nodes are the
// tree's. False: malformed; or no memory, *no_memory set.
bool trace_chunk_planes_read(struct image *image, struct base_bytes contents, bool *no_memory);

// Of parts of calls. Adds to image->calls, as trace_chunk_planes_read does.
static inline bool trace_is_of_calls(unsigned type)
{
    return type >= QUT_TRACE_FILE_CALLS && type <= QUT_TRACE_FILE_CALL_EVENTS;
}
bool trace_calls_read(struct image *image, unsigned type, struct base_bytes contents, bool *no_memory);

#endif
