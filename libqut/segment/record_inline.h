// SPDX-License-Identifier: Apache-2.0
// How records are written (formats/qut_trace.md). Behind `at` there must be room for the longest one.
#ifndef QUT_SEGMENT_RECORD_INLINE_H
#define QUT_SEGMENT_RECORD_INLINE_H

#include <string.h>

#include "libqut/segment/segment.h"

static inline uint8_t *segment_put_number(uint8_t *at, uint64_t value)
{
    if (value >= 0x80 && value < 0x4000) { // most of those that are no single byte
        uint16_t both = (uint16_t)((value & 0x7f) | 0x80 | value >> 7 << 8);
        memcpy(at, &both, sizeof both);
        return at + sizeof both;
    }
    for (; value >= 0x80; value >>= 7)
        *at++ = (uint8_t)(value | 0x80);
    *at++ = (uint8_t)value;
    return at;
}

static inline uint64_t segment_zigzag(int64_t value)
{
    return (uint64_t)value << 1 ^ (uint64_t)(value >> 63);
}

// What a record counts from: the one before it.
struct segment_record_base {
    uint64_t time, cpu_time, cpu_step;
    const qut_trace_u64 *metrics;
    uint32_t kind; // kind | flags << 8
};

// A run's numbers, out of the segment: bytes of records that are written could be those, as far as a compiler knows.
struct segment_run {
    uint64_t first_time, last_time, cpu_time;
    const qut_trace_u64 *metrics; // NULL: they are what they were
    uint32_t node, count, kind;   // kind | flags << 8
};

static inline struct segment_run segment_run_of(const struct qut_trace_run *run)
{
    return (struct segment_run){run->first_time,
                                run->last_time,
                                run->cpu_time,
                                run->metrics,
                                run->node,
                                run->count,
                                run->kind | (uint32_t)run->flags << 8};
}

// What one sample of the run took of processor time, on average.
static inline uint64_t segment_cpu_step(uint64_t growth, uint32_t count)
{
    return count == 1 ? growth : (uint64_t)((int64_t)growth / (int64_t)count);
}

static inline uint8_t *segment_put_metrics(uint8_t *at, unsigned *tag, const struct segment *segment,
                                           const qut_trace_u64 *from, const qut_trace_u64 *to)
{
    uint8_t *mask_byte = at++;
    uint32_t grown = 0;
    for (uint32_t mask = segment->metric_mask; mask; mask &= mask - 1) {
        int i = __builtin_ctz(mask);
        uint64_t growth = to[i] - from[i];
        if (growth == 0)
            continue;
        grown |= 1u << i;
        at = segment_put_number(at, growth);
    }
    if (grown == 0)
        return mask_byte;
    *tag |= QUT_TRACE_TAG_METRICS;
    *mask_byte = (uint8_t)grown;
    return at;
}

// Without extras: these follow, and have their bit in the tag, the first byte. Returns its end.
static inline uint8_t *segment_put_run_record(uint8_t *at, const struct segment *segment,
                                              const struct segment_record_base *base, const struct segment_run *run,
                                              bool is_recent)
{
    uint8_t *tag_byte = at++;
    unsigned tag = QUT_TRACE_TAG_RUN;
    if (run->kind != base->kind) {
        tag |= QUT_TRACE_TAG_KIND;
        *at++ = (uint8_t)run->kind;
        *at++ = (uint8_t)(run->kind >> 8);
    }
    if (is_recent) {
        tag |= QUT_TRACE_TAG_RECENT;
        *at++ = (uint8_t)qut_trace_recent_index(run->node);
    } else {
        at = segment_put_number(at, run->node);
    }
    at = segment_put_number(at, run->first_time - base->time);
    if (run->count > 1) {
        tag |= QUT_TRACE_TAG_COUNT;
        at = segment_put_number(at, run->count - 2);
        at = segment_put_number(at, run->last_time - run->first_time);
    }
    if (segment->flags & QUT_TRACE_HAS_CPU_TIME)
        at = segment_put_number(
            at, segment_zigzag((int64_t)(run->cpu_time - base->cpu_time - base->cpu_step * run->count)));
    if (segment->metric_mask && run->metrics)
        at = segment_put_metrics(at, &tag, segment, base->metrics, run->metrics);
    *tag_byte = (uint8_t)tag;
    return at;
}

// The longest of these.
static inline uint32_t segment_run_bytes_max(const struct segment *segment)
{
    // tag, kind, flags | node | time, count, duration | cpu | metrics
    return 3 + 4 + 10 + 5 + 10 + 10 + (segment->metric_mask ? 1 + 10 * QUT_TRACE_METRIC_COUNT : 0);
}

// earlier_ns: how much earlier the sample was than the time at which it stands.
static inline uint8_t *segment_put_extras(uint8_t *at, const struct segment_extra *extras, uint32_t count,
                                          uint64_t earlier_ns)
{
    *at++ = (uint8_t)(count + (earlier_ns != 0));
    for (uint32_t i = 0; i < count; i++) {
        *at++ = (uint8_t)extras[i].key;
        bool is_signed = extras[i].key == QUT_TRACE_EXTRA_RESULT;
        at = segment_put_number(at, is_signed ? segment_zigzag((int64_t)extras[i].value) : extras[i].value);
    }
    if (earlier_ns) {
        *at++ = QUT_TRACE_EXTRA_EARLIER_NS;
        at = segment_put_number(at, earlier_ns);
    }
    return at;
}

static inline uint8_t *segment_put_mark_record(uint8_t *at, uint32_t mark_kind, uint64_t time_since, uint64_t id,
                                               uint32_t string)
{
    *at++ = QUT_TRACE_TAG_MARK;
    *at++ = (uint8_t)mark_kind;
    at = segment_put_number(at, time_since);
    at = segment_put_number(at, id);
    return segment_put_number(at, string);
}

#endif
