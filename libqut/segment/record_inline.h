// SPDX-License-Identifier: Apache-2.0
// How records are written (formats/qut_trace.md). Behind `at` there must be room for the longest one.
#ifndef QUT_SEGMENT_RECORD_INLINE_H
#define QUT_SEGMENT_RECORD_INLINE_H

#include <assert.h>
#include <stddef.h>
#include <string.h>

#include "libqut/segment/segment.h"

// Of a number below 2^28: its bytes, from the lowest on, and how many they are. Nothing is asked that could be guessed
// wrong: how long numbers are is hard to foresee.
static inline uint32_t segment_number_word(uint32_t value, uint32_t *byte_count)
{
    static const uint32_t goes_on[4] = {0, 0x80, 0x8080, 0x808080};
    uint32_t more = (uint32_t)(value > 0x7f) + (value > 0x3fff) + (value > 0x1fffff);
    value = (value & 0x3fff) | (value & 0xfffc000) << 2;
    value = (value & 0x7f007f) | (value & 0x3f803f80) << 1;
    *byte_count = 1 + more;
    return value | goes_on[more];
}

// May write a byte more than it counts.
static inline uint8_t *segment_put_number(uint8_t *at, uint64_t value)
{
    if (__builtin_expect(value < 0x4000, 1)) { // the same, of 1 or 2 bytes
        size_t low = (size_t)value, more = low > 0x7f;
        uint16_t both = (uint16_t)(low + (low & 0x3f80) + (more << 7));
        memcpy(at, &both, sizeof both);
        return at + 1 + more;
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

// kind | flags << 16, as a run has them side by side.
static inline uint32_t segment_run_kind(const struct qut_trace_run *run)
{
    typedef uint32_t __attribute__((may_alias)) both;
    return *(const both *)(const void *)&run->kind;
}
static_assert(offsetof(struct qut_trace_run, kind) % 8 == 0 &&
                  offsetof(struct qut_trace_run, flags) == offsetof(struct qut_trace_run, kind) + 2 &&
                  offsetof(struct qut_trace_run, zero) == offsetof(struct qut_trace_run, kind) + 4,
              "one word");

// The same, as records have them: kind | flags << 8, both below 256.
static inline uint32_t segment_record_kind(uint32_t run_kind)
{
    return (run_kind | run_kind >> 8) & 0xffff;
}

// What one sample of the run took of processor time, on average.
static inline uint64_t segment_cpu_step(uint64_t growth, uint32_t count)
{
    return count == 1 ? growth : (uint64_t)((int64_t)growth / (int64_t)count);
}

static inline uint8_t *segment_put_metrics(uint8_t *at, uint8_t *tag, const struct segment *segment,
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

// A record's tag, kind and node, from the lowest byte on: 7 at most.
struct segment_record_head {
    uint64_t bytes;
    uint32_t byte_count;
};

static inline struct segment_record_head segment_record_head(uint32_t node, bool is_recent)
{
    if (is_recent)
        return (struct segment_record_head){
            (uint64_t)qut_trace_recent_index(node) << 8 | QUT_TRACE_TAG_RUN | QUT_TRACE_TAG_RECENT, 2};
    uint32_t node_bytes;
    uint64_t word = segment_number_word(node, &node_bytes);
    return (struct segment_record_head){word << 8 | QUT_TRACE_TAG_RUN, 1 + node_bytes};
}

static inline struct segment_record_head segment_head_with_kind(struct segment_record_head head, uint32_t record_kind)
{
    return (struct segment_record_head){(head.bytes & 0xff) | QUT_TRACE_TAG_KIND | (uint64_t)record_kind << 8 |
                                            head.bytes >> 8 << 24,
                                        head.byte_count + 2};
}

// What is counted from the run before is counted from `base`. Without extras: these follow, and have their bit in the
// tag, the first byte. Returns its end. Each number is written as soon as it is known: processors have few registers.
static inline uint8_t *segment_put_run_record(uint8_t *begin, const struct segment *segment,
                                              struct segment_record_head head, const struct qut_trace_run *run,
                                              const struct qut_trace_commit *base, bool has_metrics)
{
    memcpy(begin, &head.bytes, sizeof head.bytes);
    uint8_t *at = segment_put_number(begin + head.byte_count, run->first_time - base->time);
    if (run->count > 1) {
        *begin |= QUT_TRACE_TAG_COUNT;
        at = segment_put_number(at, run->count - 2);
        at = segment_put_number(at, run->last_time - run->first_time);
    }
    if (__builtin_expect(segment->flags & QUT_TRACE_HAS_CPU_TIME, 1))
        at = segment_put_number(
            at, segment_zigzag((int64_t)(run->cpu_time - base->cpu_time - base->cpu_step * run->count)));
    if (has_metrics && segment->metric_mask)
        at = segment_put_metrics(at, begin, segment, base->metrics, run->metrics);
    return at;
}

// The longest of these.
static inline uint32_t segment_run_bytes_max(const struct segment *segment)
{
    // tag, kind, flags | node | time, count, duration | cpu | metrics
    return 3 + 4 + 10 + 5 + 10 + 10 + (segment->metric_mask ? 1 + 10 * QUT_TRACE_METRIC_COUNT : 0);
}

// Whether a record says it by its bit: what is no whole unit stands among the extras, to the nanosecond.
static inline bool segment_is_told(const struct segment *segment, const struct segment_extra *extra)
{
    return extra->key == QUT_TRACE_EXTRA_CPU_NS && segment->flags & QUT_TRACE_HAS_CPU_TIME &&
           extra->value % (1u << QUT_TRACE_TIME_SHIFT) == 0;
}

// growth: units of processor time since the run before.
static inline uint8_t *segment_put_told(uint8_t *at, uint64_t told_ns, uint64_t growth)
{
    return segment_put_number(at, segment_zigzag((int64_t)((told_ns >> QUT_TRACE_TIME_SHIFT) - growth)));
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
