// SPDX-License-Identifier: Apache-2.0
// A segment's records, read from formats/qut_trace.h alone. It trusts its input less than it must, but is no reader for
// files of others: a wrong byte fails the test.
#ifndef TESTS_UNIT_LIBQUT_SEGMENT_DECODE_H
#define TESTS_UNIT_LIBQUT_SEGMENT_DECODE_H

#include <stdbool.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "formats/qut_trace.h"

struct decoded {
    uint64_t first_time, last_time, cpu_time, metrics[QUT_TRACE_METRIC_COUNT];
    uint64_t extra_values[QUT_TRACE_EXTRAS_MAX], mark_id;
    uint32_t node, count, mark_kind, mark_string, uid;
    uint16_t kind, flags;
    uint8_t extra_keys[QUT_TRACE_EXTRAS_MAX], extra_count, level;
    bool is_mark;
};

struct decode {
    const uint8_t *base;
    const struct qut_trace_header *header;
    struct decoded *records;
    size_t count, capacity;
    uint64_t samples, sealed_chunks, open_chunks;
    const char *fault; // NULL: none
};

struct decode_bytes {
    const uint8_t *at, *end;
    bool is_short;
};

static inline uint64_t decode_byte(struct decode_bytes *bytes)
{
    if (bytes->at == bytes->end) {
        bytes->is_short = true;
        return 0;
    }
    return *bytes->at++;
}

static inline uint64_t decode_number(struct decode_bytes *bytes)
{
    uint64_t value = 0, byte;
    unsigned shift = 0;
    do {
        byte = decode_byte(bytes);
        if (shift < 64)
            value |= (byte & 0x7f) << shift;
        shift += 7;
    } while (byte & 0x80);
    return value;
}

static inline struct decoded *decode_new(struct decode *d)
{
    if (d->count == d->capacity) {
        d->capacity = d->capacity ? d->capacity * 2 : 1024;
        d->records = realloc(d->records, d->capacity * sizeof *d->records);
        if (!d->records)
            abort();
    }
    struct decoded *record = &d->records[d->count++];
    memset(record, 0, sizeof *record);
    return record;
}

static inline void trace_decode_chunk(struct decode *d, const struct qut_trace_chunk *chunk, uint32_t used_bytes,
                                      uint32_t record_count, uint64_t samples_expected)
{
    uint32_t recent[QUT_TRACE_RECENT_COUNT] = {0};
    uint64_t time = chunk->base_time, cpu_time = chunk->base_cpu_time, metrics[QUT_TRACE_METRIC_COUNT], samples = 0;
    uint64_t cpu_step = 0;
    uint32_t kind = chunk->base_kind & 0xff, flags = chunk->base_kind >> 8;
    memcpy(metrics, chunk->base_metrics, sizeof metrics);
    struct decode_bytes bytes = {(const uint8_t *)(chunk + 1), (const uint8_t *)(chunk + 1) + used_bytes, false};
    for (uint32_t i = 0; i < record_count && !bytes.is_short; i++) {
        struct decoded *record = decode_new(d);
        record->uid = chunk->thread_uid;
        record->level = chunk->level;
        unsigned tag = (unsigned)decode_byte(&bytes);
        if ((tag & QUT_TRACE_TAG_TYPE_MASK) == QUT_TRACE_TAG_MARK) {
            record->is_mark = true;
            record->mark_kind = (uint32_t)decode_byte(&bytes);
            record->first_time = record->last_time = time += decode_number(&bytes);
            record->mark_id = decode_number(&bytes);
            record->mark_string = (uint32_t)decode_number(&bytes);
            continue;
        }
        if (tag & QUT_TRACE_TAG_KIND) {
            kind = (uint32_t)decode_byte(&bytes);
            flags = (uint32_t)decode_byte(&bytes);
        }
        record->kind = (uint16_t)kind;
        record->flags = (uint16_t)flags;
        if (tag & QUT_TRACE_TAG_RECENT)
            record->node = recent[decode_byte(&bytes)];
        else
            record->node = (uint32_t)decode_number(&bytes);
        if (tag & QUT_TRACE_TAG_RECENT && !record->node)
            d->fault = "an index where there is no recent node";
        recent[qut_trace_recent_index(record->node)] = record->node;
        record->first_time = time + decode_number(&bytes);
        record->last_time = record->first_time;
        record->count = 1;
        if (tag & QUT_TRACE_TAG_COUNT) {
            record->count = (uint32_t)decode_number(&bytes) + 2;
            record->last_time += decode_number(&bytes);
        }
        uint64_t growth = 0;
        if (chunk->flags & QUT_TRACE_HAS_CPU_TIME) {
            uint64_t zigzag = decode_number(&bytes);
            growth = (zigzag >> 1 ^ -(zigzag & 1)) + cpu_step * record->count;
            cpu_time += growth;
            cpu_step = (uint64_t)((int64_t)growth / (int64_t)record->count);
        }
        record->cpu_time = cpu_time;
        time = record->last_time;
        unsigned mask = tag & QUT_TRACE_TAG_METRICS ? (unsigned)decode_byte(&bytes) : 0;
        for (int m = 0; m < QUT_TRACE_METRIC_COUNT; m++)
            if (mask >> m & 1)
                metrics[m] += decode_number(&bytes);
        memcpy(record->metrics, metrics, sizeof metrics);
        if (tag & QUT_TRACE_TAG_TOLD) {
            uint64_t zigzag = decode_number(&bytes);
            record->extra_keys[0] = QUT_TRACE_EXTRA_CPU_NS;
            record->extra_values[0] = (growth + (zigzag >> 1 ^ -(zigzag & 1))) << d->header->time_shift;
            record->extra_count = 1;
            if (!(chunk->flags & QUT_TRACE_HAS_CPU_TIME))
                d->fault = "told without processor time";
        }
        if (tag & QUT_TRACE_TAG_EXTRAS) {
            unsigned first = record->extra_count, extras = first + (unsigned)decode_byte(&bytes);
            if (extras > QUT_TRACE_EXTRAS_MAX) {
                d->fault = "too many extras";
                return;
            }
            record->extra_count = (uint8_t)extras;
            for (unsigned e = first; e < extras; e++) {
                record->extra_keys[e] = (uint8_t)decode_byte(&bytes);
                record->extra_values[e] = decode_number(&bytes);
                if (record->extra_keys[e] == QUT_TRACE_EXTRA_RESULT) // zigzag
                    record->extra_values[e] = record->extra_values[e] >> 1 ^ (0 - (record->extra_values[e] & 1));
            }
        }
        samples += record->count;
    }
    if (bytes.is_short || bytes.at != bytes.end)
        d->fault = "a chunk's records do not end where its bytes do";
    if (samples != samples_expected)
        d->fault = "a chunk has another number of samples than it says";
    d->samples += samples;
}

static inline const struct qut_trace_thread *decode_thread(const struct decode *d, uint32_t slot)
{
    return (const struct qut_trace_thread *)(d->base + d->header->threads.offset_bytes +
                                             (size_t)slot * d->header->thread_stride_bytes);
}

static inline void decode_open(struct decode *d, const struct qut_trace_chunk *chunk, uint32_t index, uint64_t word)
{
    uint32_t level = word >> QUT_TRACE_CHUNK_LEVEL_SHIFT & 3, slot = word >> QUT_TRACE_CHUNK_SLOT_SHIFT & 0xffff;
    const struct qut_trace_writer *writer = &decode_thread(d, slot)->writers[level];
    const struct qut_trace_commit *commit = &writer->commits[writer->version & 1];
    if (commit->chunk != index + 1 || commit->chunk_seq != (uint32_t)(word >> QUT_TRACE_CHUNK_SEQ_SHIFT))
        return; // nothing in it yet
    trace_decode_chunk(d, chunk, commit->used_bytes, commit->record_count, commit->chunk_samples);
    d->open_chunks++;
    const struct qut_trace_run *run = &commit->run;
    if (run->count == 0)
        return;
    struct decoded *record = decode_new(d);
    record->uid = chunk->thread_uid;
    record->level = chunk->level;
    record->first_time = run->first_time;
    record->last_time = run->last_time;
    record->cpu_time = run->cpu_time;
    for (int m = 0; m < QUT_TRACE_METRIC_COUNT; m++)
        record->metrics[m] = run->metrics[m];
    record->node = run->node;
    record->count = run->count;
    record->kind = run->kind;
    record->flags = run->flags;
    d->samples += run->count;
}

static const qut_trace_u64 *decode_directory; // of the sort that runs

static inline int decode_by_seq(const void *a, const void *b)
{
    uint64_t x = decode_directory[*(const uint32_t *)a], y = decode_directory[*(const uint32_t *)b];
    return x < y ? -1 : x > y; // seq stands highest
}

// All records, chunk by chunk in the order of seq. free(d->records) afterwards.
static inline void decode_segment(struct decode *d, const void *base)
{
    memset(d, 0, sizeof *d);
    d->base = base;
    d->header = base;
    const struct qut_trace_header *h = d->header;
    const qut_trace_u64 *directory = (const qut_trace_u64 *)(d->base + h->directory.offset_bytes);
    uint32_t *order = malloc(h->chunk_count * sizeof *order);
    if (!order)
        abort();
    for (uint32_t i = 0; i < h->chunk_count; i++)
        order[i] = i;
    decode_directory = directory;
    qsort(order, h->chunk_count, sizeof *order, decode_by_seq);
    for (uint32_t i = 0; i < h->chunk_count; i++) {
        uint64_t word = directory[order[i]];
        const struct qut_trace_chunk *chunk =
            (const struct qut_trace_chunk *)(d->base + h->chunks.offset_bytes +
                                             (size_t)order[i] * QUT_TRACE_CHUNK_BYTES);
        unsigned state = word & 3;
        if (state == QUT_TRACE_CHUNK_OPEN)
            decode_open(d, chunk, order[i], word);
        if (state != QUT_TRACE_CHUNK_SEALED)
            continue;
        if (chunk->magic != QUT_TRACE_CHUNK_MAGIC || chunk->seq != word >> QUT_TRACE_CHUNK_SEQ_SHIFT ||
            chunk->used_bytes > QUT_TRACE_CHUNK_BYTES - sizeof *chunk)
            d->fault = "a sealed chunk's header does not fit its word";
        else
            trace_decode_chunk(d, chunk, chunk->used_bytes, chunk->record_count, chunk->sample_count);
        d->sealed_chunks++;
    }
    free(order);
}

#endif
