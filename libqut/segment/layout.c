// SPDX-License-Identifier: Apache-2.0
#include "libqut/segment/layout.h"

#include <errno.h>

#include "libqut/os/shared_memory.h"

enum {
    DEFAULT_SEGMENT_BYTES = 32 << 20,
    SECTION_ALIGNMENT = 64,
    THREAD_ALIGNMENT = 128, // the prefetcher takes lines by two
    DEFAULT_THREADS = 512,
    MIN_THREADS = 4,
    MODULES = 4096,
    MIN_MODULES = 16,
    MIN_NODE_BITS = 4,
    MAX_STRING_BYTES = 16 << 20,
    OUTER_RING = 16,
    MIN_CHUNKS = 8,
};

// All chunks and nodes that there can be, and room for the rest. More would be taken, and never used.
static const uint64_t SEGMENT_BYTES_MAX = (uint64_t)17 << 30;

static uint64_t align_up(uint64_t value, uint64_t alignment)
{
    return (value + alignment - 1) & ~(alignment - 1);
}

static uint64_t min_u64(uint64_t a, uint64_t b)
{
    return a < b ? a : b;
}

static uint64_t max_u64(uint64_t a, uint64_t b)
{
    return a > b ? a : b;
}

static uint32_t log2_of(uint64_t value)
{
    return value ? 63 - (uint32_t)__builtin_clzll(value) : 0;
}

static void put_section(struct qut_trace_section *section, uint64_t *end, uint64_t size_bytes, uint64_t alignment)
{
    section->offset_bytes = align_up(*end, alignment);
    section->size_bytes = size_bytes;
    *end = section->offset_bytes + size_bytes;
}

// Threads take an eighth of the segment, if their number is not given; their rings a sixteenth, so that with many
// threads a single one cannot have all chunks.
static int lay_out_threads(struct qut_trace_header *header, const struct segment_options *options)
{
    uint64_t bytes = header->segment_bytes, chunks = bytes / QUT_TRACE_CHUNK_BYTES;
    uint64_t fitting = max_u64(bytes / 8 / sizeof(struct qut_trace_thread), MIN_THREADS);
    uint64_t threads = options->thread_count ? options->thread_count : min_u64(DEFAULT_THREADS, fitting);
    if (threads > QUT_TRACE_THREADS_MAX)
        return -EINVAL;
    uint64_t ring = max_u64(min_u64(chunks / 2, bytes / 16 / sizeof(uint32_t) / threads), 4);
    uint64_t outer = min_u64(ring, OUTER_RING);
    header->thread_capacity = (uint32_t)threads;
    header->ring_capacity = (uint32_t)ring;
    header->outer_ring_capacity = (uint32_t)outer;
    header->thread_stride_bytes = (uint32_t)align_up(
        sizeof(struct qut_trace_thread) + (ring + (QUT_TRACE_LEVELS - 1) * outer) * sizeof(uint32_t), THREAD_ALIGNMENT);
    return 0;
}

static int lay_out_chunks(struct qut_trace_header *header, uint64_t end, uint64_t page_bytes)
{
    uint64_t of_chunk = QUT_TRACE_CHUNK_BYTES + sizeof(uint32_t) + sizeof(uint64_t);
    uint64_t borders = 2 * SECTION_ALIGNMENT + page_bytes;
    if (end + borders + MIN_CHUNKS * of_chunk > header->segment_bytes)
        return -EINVAL;
    uint64_t count = min_u64((header->segment_bytes - end - borders) / of_chunk, QUT_TRACE_CHUNKS_MAX);
    put_section(&header->free_list, &end, count * sizeof(uint32_t), SECTION_ALIGNMENT);
    put_section(&header->directory, &end, count * sizeof(uint64_t), SECTION_ALIGNMENT);
    put_section(&header->chunks, &end, count * QUT_TRACE_CHUNK_BYTES, page_bytes);
    header->chunk_count = (uint32_t)count;
    header->ring_capacity = (uint32_t)min_u64(header->ring_capacity, count / 2);
    header->outer_ring_capacity = (uint32_t)min_u64(header->outer_ring_capacity, count / 2);
    return 0;
}

int segment_trace_lay_out(struct qut_trace_header *header, const struct segment_options *options)
{
    uint64_t page_bytes = max_u64(os_page_bytes(), QUT_TRACE_CHUNK_BYTES);
    uint64_t asked = options->segment_bytes ? options->segment_bytes : DEFAULT_SEGMENT_BYTES;
    if (asked > SEGMENT_BYTES_MAX || asked > SIZE_MAX / 2)
        return -EINVAL;
    uint64_t bytes = header->segment_bytes = align_up(asked, page_bytes);
    uint32_t node_bits = options->node_bits;
    if (node_bits == 0)
        node_bits = (uint32_t)min_u64(log2_of(bytes / 4 / sizeof(uint64_t)), QUT_TRACE_NODE_BITS_MAX);
    if (node_bits < MIN_NODE_BITS || node_bits > QUT_TRACE_NODE_BITS_MAX)
        return -EINVAL;
    header->node_capacity = (uint32_t)1 << node_bits;
    header->raw_capacity = (uint32_t)max_u64(header->node_capacity / 16, 1 << MIN_NODE_BITS);
    header->module_capacity =
        (uint32_t)max_u64(min_u64(bytes / 32 / sizeof(struct qut_trace_module), MODULES), MIN_MODULES);
    if (lay_out_threads(header, options) != 0)
        return -EINVAL;
    uint64_t string_bytes = min_u64(bytes / 32, MAX_STRING_BYTES) & ~(uint64_t)(SECTION_ALIGNMENT - 1);
    uint64_t end = sizeof *header;
    put_section(&header->counters, &end, sizeof(struct qut_trace_counters), SECTION_ALIGNMENT);
    put_section(&header->threads, &end, (uint64_t)header->thread_capacity * header->thread_stride_bytes,
                THREAD_ALIGNMENT);
    put_section(&header->modules, &end, header->module_capacity * sizeof(struct qut_trace_module), SECTION_ALIGNMENT);
    put_section(&header->strings, &end, string_bytes, SECTION_ALIGNMENT);
    put_section(&header->string_index, &end, sizeof(uint32_t) << log2_of(string_bytes / 16 | 1), SECTION_ALIGNMENT);
    put_section(&header->raw, &end, header->raw_capacity * sizeof(uint64_t), SECTION_ALIGNMENT);
    put_section(&header->nodes, &end, header->node_capacity * sizeof(uint64_t), SECTION_ALIGNMENT);
    return lay_out_chunks(header, end, page_bytes);
}
