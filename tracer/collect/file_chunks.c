// SPDX-License-Identifier: Apache-2.0
#include "tracer/collect/file_chunks.h"

#include <string.h>

int collect_chunk_batch_write(const struct chunk_batch *batch, struct trace_file *file, uint8_t *scratch,
                              struct base_error *error)
{
    const uint32_t head[2] = {batch->count, 0};
    uint8_t *at = scratch;
    memcpy(at, head, sizeof head);
    at += sizeof head;
    memcpy(at, batch->told, batch->count * sizeof *batch->told);
    at += batch->count * sizeof *batch->told;
    // Headers are like each other: they pack to little side by side.
    for (uint32_t i = 0; i < batch->count; i++, at += sizeof(struct qut_trace_chunk))
        memcpy(at, batch->bytes[i], sizeof(struct qut_trace_chunk));
    for (uint32_t i = 0; i < batch->count; at += batch->told[i].used_bytes, i++)
        memcpy(at, batch->bytes[i] + sizeof(struct qut_trace_chunk), batch->told[i].used_bytes);
    return collect_trace_file_block(file, QUT_TRACE_FILE_CHUNKS, scratch, (size_t)(at - scratch), batch->sample_count,
                                    error);
}
