// SPDX-License-Identifier: Apache-2.0
// A sample as most are: it changes what was prepared by the one before, in a few words, and all that is asked is asked
// before anything is written that counts. Inline, since what it takes to call it would be a tenth of it.
#ifndef QUT_SEGMENT_APPEND_INLINE_H
#define QUT_SEGMENT_APPEND_INLINE_H

#include "libqut/include/qut/trace.h"
#include "libqut/segment/inside.h"

#pragma GCC visibility push(hidden)

enum { SEGMENT_TWINS = 1, SEGMENT_ALIKE = 2 }; // of `twins`
enum { SEGMENT_RUN_SAMPLES_MAX = 1 << 20 };    // so that all those of a chunk can be counted in 32 bits

enum { SEGMENT_NOT_PLAIN = 1 << 8 }; // beside enum qut_stored

static inline bool segment_has_node(const struct segment *segment, uint32_t node)
{
    return (node <= segment->node_mask && segment_get64(&segment->nodes[node])) || node == 0;
}

static inline uint64_t segment_cpu_units(const struct segment *segment, uint64_t cpu_ns)
{
    return segment->flags & QUT_TRACE_HAS_CPU_TIME ? cpu_ns >> QUT_TRACE_TIME_SHIFT : 0;
}

// Those that are not measured are 0 everywhere.
static inline void segment_fill_metrics(const struct segment *segment, qut_trace_u64 *to, const qut_trace_u64 *last,
                                        const uint64_t *metrics)
{
    for (uint32_t mask = segment->metric_mask; mask; mask &= mask - 1) {
        int i = __builtin_ctz(mask);
        // They only grow; one that falls keeps its last value.
        segment_fill64(&to[i], metrics && metrics[i] > last[i] ? metrics[i] : last[i]);
    }
}

// kind: kind | flags << 16.
static inline void segment_fill_run(struct qut_trace_run *run, uint32_t node, uint32_t kind, uint64_t time,
                                    uint64_t cpu_time)
{
    segment_fill64(&run->first_time, time);
    segment_fill64(&run->last_time, time);
    segment_fill64(&run->cpu_time, cpu_time);
    segment_put32(&run->node, node);
    segment_put32(&run->count, 1);
    segment_fill64((qut_trace_u64 *)(void *)&run->kind, kind);
}

// What holds, and the copy that does not.
struct segment_copies {
    const struct qut_trace_commit *from;
    struct qut_trace_commit *to;
};

static inline struct segment_copies segment_copies_of(struct qut_trace_writer *writer)
{
    uint32_t version = segment_get32(&writer->version);
    size_t from_bytes = (0 - (size_t)(version & 1)) & sizeof(struct qut_trace_commit);
    uint8_t *first = (uint8_t *)writer->commits;
    struct segment_copies copies = {(const struct qut_trace_commit *)(const void *)(first + from_bytes),
                                    (struct qut_trace_commit *)(void *)(first + (sizeof *copies.to - from_bytes))};
    // Where they are once and for all: compilers would find it anew for each of their words.
    __asm__("" : "+r"(copies.from), "+r"(copies.to));
    return copies;
}

// Release: a reader that sees the version sees the copy, and the bytes that it counts.
static inline void segment_make_valid(struct qut_trace_writer *writer)
{
    __atomic_store_n(&writer->version, segment_get32(&writer->version) + 1, __ATOMIC_RELEASE);
    segment_order();
}

// What plain samples leave alone. After the last of them, until there is one that is not, it is the same in both
// copies.
static inline void segment_make_alike(struct qut_trace_writer *writer, const struct segment_copies *copies)
{
    segment_put32(&writer->twins, 0);
    segment_order();
    segment_fill64(&copies->to->merged, copies->from->merged);
    segment_fill64(&copies->to->overwritten, copies->from->overwritten);
    segment_order();
    segment_put32(&writer->twins, SEGMENT_ALIKE);
}

// ---- append.c

// A sample that equals the open record's last one: in place.
void segment_merge(const struct segment *segment, struct qut_trace_writer *writer, uint64_t time, uint64_t cpu_time,
                   const uint64_t *metrics);
// A sample without extras, by its numbers. `kind` is kind | flags << 16 of a sample that is well-formed; times are in
// units. SEGMENT_NOT_PLAIN: nothing was done, it has to go through segment_append.
int segment_put_with_all(const struct segment *segment, struct qut_trace_writer *writer, uint32_t node, uint32_t kind,
                         uint64_t time, uint64_t cpu_time, const uint64_t *metrics);

// ----

// Pairs of words: chunk and used_bytes, record_count and chunk_samples, kind and chunk_seq.
static_assert(offsetof(struct qut_trace_commit, chunk) % 8 == 0 &&
                  offsetof(struct qut_trace_commit, used_bytes) == offsetof(struct qut_trace_commit, chunk) + 4 &&
                  offsetof(struct qut_trace_commit, record_count) % 8 == 0 &&
                  offsetof(struct qut_trace_commit, chunk_samples) ==
                      offsetof(struct qut_trace_commit, record_count) + 4 &&
                  offsetof(struct qut_trace_commit, kind) % 8 == 0 &&
                  offsetof(struct qut_trace_commit, chunk_seq) == offsetof(struct qut_trace_commit, kind) + 4,
              "pairs");

// All but plain ones are asked everything: with_all. Those have no metrics, there were none in the last two, and there
// surely is room for two more records.
static inline __attribute__((always_inline)) int segment_put(const struct segment *segment,
                                                             struct qut_trace_writer *writer, uint32_t node,
                                                             uint32_t kind, uint64_t time, uint64_t cpu_time,
                                                             const uint64_t *metrics, bool with_all, bool is_innermost)
{
    struct segment_copies copies = segment_copies_of(writer);
    const struct qut_trace_commit *from = copies.from;
    struct qut_trace_commit *to = copies.to;
    uint32_t open_node = from->run.node, count = from->run.count;
    uint64_t last_time = from->run.last_time;
    // A time that goes back is a gap beyond all limits, as a number without sign.
    if (open_node == node && segment_run_kind(&from->run) == kind && count - 1 < SEGMENT_RUN_SAMPLES_MAX - 1 &&
        !(kind & QUT_TRACE_SAMPLE_BEGINS << 16) && time >= last_time && time - last_time <= segment->merge_gap_units) {
        segment_merge(segment, writer, time, cpu_time, metrics);
        return QUT_STORED_MERGED;
    }
    if (count == 0 || time < last_time || !segment_has_node(segment, node) ||
        writer->under_way | writer->sealing | writer->taking)
        return SEGMENT_NOT_PLAIN;
    uint32_t still = writer->still;
    if (!with_all && __builtin_expect(from->used_bytes > segment->plain_bytes_max || still != SEGMENT_STILL, 0))
        return segment_put_with_all(segment, writer, node, kind, time, cpu_time, NULL);
    if (with_all && metrics)
        segment_put32(&writer->still, 0);
    segment_order();
    segment_order_stores(); // the other copy may be read until its `version` is over
    if (writer->twins != SEGMENT_ALIKE)
        segment_make_alike(writer, &copies);
    // First what lies in few words for long: so processors have registers for the rest.
    segment_fill_run(&to->run, node, kind, time, cpu_time);
    segment_fill64(&to->time, last_time);
    if (with_all) {
        segment_fill_metrics(segment, to->run.metrics, from->run.metrics, metrics);
        for (uint32_t mask = segment->metric_mask; mask; mask &= mask - 1)
            segment_fill64(&to->metrics[__builtin_ctz(mask)], from->run.metrics[__builtin_ctz(mask)]);
    }
    segment_fill64(&to->stored, from->stored + 1);
    segment_fill_pair(&to->record_count, segment_get_pair(&from->record_count) + 1 + ((uint64_t)count << 32));
    segment_fill64(&to->cpu_time, from->run.cpu_time);
    segment_fill64(&to->cpu_step, segment_cpu_step(from->run.cpu_time - from->cpu_time, count));
    // The record's bytes: behind those that count.
    uint32_t *recent = &writer->recent[qut_trace_recent_index(open_node)];
    bool is_recent = *recent == open_node && open_node; // 0: nothing
    if (!is_recent)
        segment_put32(recent, 0); // see is_recent in transaction.c
    struct segment_record_head head = segment_record_head(open_node, is_recent);
    uint64_t kinds = segment_get_pair(&from->kind);
    uint32_t record_kind = segment_record_kind(segment_run_kind(&from->run));
    if (__builtin_expect((uint32_t)kinds != record_kind, 0)) {
        kinds = (kinds & ~(uint64_t)UINT32_MAX) | record_kind;
        head = segment_head_with_kind(head, record_kind);
    }
    segment_fill_pair(&to->kind, kinds);
    uint64_t place = segment_get_pair(&from->chunk);
    uint8_t *begin = (uint8_t *)(segment_chunk_at(segment, (uint32_t)place - 1) + 1) + (place >> 32);
    const uint8_t *end = segment_put_run_record(begin, segment, head, &from->run, from, with_all);
    place += (uint64_t)(end - begin) << 32;
    if (with_all && place >> 32 > segment->used_bytes_max)
        return SEGMENT_NOT_PLAIN;
    segment_fill_pair(&to->chunk, place);
    segment_begin_hit_at_once(writer, is_innermost);
    segment_make_valid(writer);
    segment_put32(recent, open_node);
    if (with_all && !metrics && still < SEGMENT_STILL)
        segment_put32(&writer->still, still + 1);
    segment_end_hit(writer);
    return QUT_STORED;
}

// The same of one that has no metrics either. is_innermost: the writer's level is.
static inline __attribute__((always_inline)) int segment_put_plain(const struct segment *segment,
                                                                   struct qut_trace_writer *writer, bool is_innermost,
                                                                   uint32_t node, uint32_t kind, uint64_t time,
                                                                   uint64_t cpu_time)
{
    return segment_put(segment, writer, node, kind, time, cpu_time, NULL, false, is_innermost);
}

#pragma GCC visibility pop

#endif
