// SPDX-License-Identifier: Apache-2.0
// Chunks, gathered until there are enough for a block of the file.
#ifndef TRACER_COLLECT_FILE_CHUNKS_H
#define TRACER_COLLECT_FILE_CHUNKS_H

#include "tracer/collect/file_write.h"
#include "tracer/trace/segment_view.h"

struct chunk_batch {
    uint32_t count;
    uint32_t sample_count;
    struct qut_trace_file_chunk told[QUT_TRACE_FILE_BLOCK_CHUNKS_MAX];
    alignas(8) uint8_t bytes[QUT_TRACE_FILE_BLOCK_CHUNKS_MAX][QUT_TRACE_CHUNK_BYTES];
    // Where they came from, so that they can be given back.
    uint32_t indices[QUT_TRACE_FILE_BLOCK_CHUNKS_MAX];
    uint64_t words[QUT_TRACE_FILE_BLOCK_CHUNKS_MAX];
};

enum {
    CHUNK_BATCH_BYTES_MAX =
        8 + QUT_TRACE_FILE_BLOCK_CHUNKS_MAX * (QUT_TRACE_CHUNK_BYTES + sizeof(struct qut_trace_file_chunk))
};
// Writes the batch as one block. `scratch` has room for CHUNK_BATCH_BYTES_MAX.
int collect_chunk_batch_write(const struct chunk_batch *batch, struct trace_file *file, uint8_t *scratch,
                              struct base_error *error);

#endif
