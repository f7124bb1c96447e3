// SPDX-License-Identifier: Apache-2.0
#include "tests/proof/fuzz/segment_input.h"

#include "formats/qut_table_check.h"
#include "tests/proof/fuzz/fuzz.h"

enum {
    THREADS = 2,
    MODULES = 4,
    NODES = 64,
    RAW = 64,
    CHUNKS = 4,
    STRING_BYTES = 256,
    STRIDE = sizeof(struct qut_trace_thread) + 64
};

static struct qut_trace_section section(uint64_t *at, uint64_t size)
{
    struct qut_trace_section made = {*at, size};
    *at += (size + 63) & ~(uint64_t)63;
    return made;
}

struct qut_trace_header fuzz_segment_header(void)
{
    uint64_t at = sizeof(struct qut_trace_header);
    struct qut_trace_header header = {.version = QUT_TRACE_VERSION,
                                      .arch = 1,
                                      .word_bytes = 8,
                                      .time_shift = QUT_TRACE_TIME_SHIFT,
                                      .metric_mask = 3,
                                      .flags = QUT_TRACE_HAS_CPU_TIME,
                                      .thread_capacity = THREADS,
                                      .module_capacity = MODULES,
                                      .raw_capacity = RAW,
                                      .node_capacity = NODES,
                                      .chunk_count = CHUNKS,
                                      .thread_stride_bytes = STRIDE,
                                      .state = QUT_TRACE_CLOSED,
                                      .module_count = MODULES,
                                      .thread_count = THREADS,
                                      .thread_uid_next = 100,
                                      .string_used_bytes = STRING_BYTES};
    memcpy(header.magic, QUT_TRACE_MAGIC, sizeof header.magic);
    header.counters = section(&at, sizeof(struct qut_trace_counters));
    header.threads = section(&at, (uint64_t)THREADS * STRIDE);
    header.modules = section(&at, MODULES * sizeof(struct qut_trace_module));
    header.strings = section(&at, STRING_BYTES);
    header.string_index = section(&at, 64);
    header.raw = section(&at, RAW * 8);
    header.nodes = section(&at, NODES * 8);
    header.free_list = section(&at, CHUNKS * 4);
    header.directory = section(&at, CHUNKS * 8);
    header.chunks = section(&at, (uint64_t)CHUNKS * QUT_TRACE_CHUNK_BYTES);
    header.segment_bytes = at;
    return header;
}

// Chunks that say they are sealed get the checksum that they have.
void fuzz_seal(struct qut_trace_chunk *chunk)
{
    const uint32_t room = QUT_TRACE_CHUNK_BYTES - sizeof *chunk;
    chunk->magic = QUT_TRACE_CHUNK_MAGIC;
    chunk->used_bytes %= room + 1;
    chunk->level %= QUT_TRACE_LEVELS;
    chunk->thread_uid = 1 + chunk->thread_uid % 8;
    chunk->flags &= QUT_TRACE_HAS_CPU_TIME;
    chunk->base_time >>= 16;
    chunk->checksum = 0;
    chunk->checksum = qut_table_checksum(chunk, sizeof *chunk + chunk->used_bytes);
}

uint8_t *fuzz_segment(const uint8_t *data, size_t size, size_t *segment_bytes)
{
    const struct qut_trace_header header = fuzz_segment_header();
    uint8_t *bytes = aligned_alloc(64, header.segment_bytes);
    fuzz_require(bytes != NULL);
    memset(bytes, 0, header.segment_bytes);
    // From the end back: what a small input has goes to where the most depends on it.
    const struct qut_trace_section *order[] = {&header.directory, &header.nodes,   &header.raw,      &header.threads,
                                               &header.chunks,    &header.modules, &header.counters, &header.strings};
    for (size_t i = 0; i < sizeof order / sizeof *order; i++) {
        size_t taken = size < order[i]->size_bytes ? size : order[i]->size_bytes;
        memcpy(bytes + order[i]->offset_bytes, data, taken);
        data += taken;
        size -= taken;
    }
    for (uint32_t i = 0; i < CHUNKS; i++)
        fuzz_seal((void *)(bytes + header.chunks.offset_bytes + (size_t)i * QUT_TRACE_CHUNK_BYTES));
    memcpy(bytes, &header, sizeof header);
    *segment_bytes = (size_t)header.segment_bytes;
    return bytes;
}
