// SPDX-License-Identifier: Apache-2.0
#include <string.h>

#include "libqut/include/qut/trace.h"
#include "libqut/segment/inside.h"

enum {
    KIND_MAX = QUT_TRACE_OWN_KIND_FIRST + QUT_TRACE_OWN_KIND_COUNT - 1,
    KEY_MAX = 127,
    SETTLE_TRIES_MAX = 64,
    STILL = 2
};
static_assert(3 + 4 + 10 + 5 + 10 + 10 + 1 + 10 * QUT_TRACE_METRIC_COUNT + 1 + QUT_TRACE_EXTRAS_MAX * 11 <=
                  QUT_TRACE_RECORD_BYTES_MAX,
              "no record is longer");

// ---- counting

void segment_settle(struct qut_trace_writer *writer)
{
    const struct qut_trace_counts *counts = &writer->counts;
    const struct qut_trace_commit *commit = segment_commit_of(writer);
    // Appends nested too deep count here, too, in between.
    for (int tries = 0; tries < SETTLE_TRIES_MAX; tries++) {
        uint64_t hits = segment_get64(&counts->hits);
        uint64_t done = commit->stored + commit->merged + segment_get64(&counts->throttled) + segment_lost_of(counts);
        if (segment_get64(&counts->hits) != hits)
            continue;
        if (hits > done)
            segment_add_to(&writer->counts.lost[QUT_TRACE_LOST_JUMPED], hits - done);
        break;
    }
    segment_put32(&writer->under_way, 0);
}

static inline void begin_hit(struct qut_trace_writer *writer)
{
    if (__builtin_expect(writer->under_way != 0, 0))
        segment_settle(writer);
    segment_put32(&writer->under_way, 1);
    segment_order();
    // What is nested too deep is counted with the innermost writer.
    if (__builtin_expect(writer->level == QUT_TRACE_LEVELS - 1, 0))
        segment_count_shared(&writer->counts.hits, 1);
    else
        segment_add_to(&writer->counts.hits, 1);
    segment_order();
}

static inline void end_hit(struct qut_trace_writer *writer)
{
    segment_order();
    segment_put32(&writer->under_way, 0);
}

static int lose(struct qut_trace_writer *writer, enum qut_trace_lost reason)
{
    segment_add_to(&writer->counts.lost[reason], 1);
    end_hit(writer);
    return QUT_STORED_NOT;
}

void segment_lose(struct qut_trace_writer *writer, enum qut_trace_lost reason)
{
    begin_hit(writer);
    lose(writer, reason);
}

void segment_skip(struct qut_trace_writer *writer)
{
    begin_hit(writer);
    segment_add_to(&writer->counts.throttled, 1);
    end_hit(writer);
}

void segment_throttle(struct qut_trace_writer *writer, uint32_t total, uint64_t amount)
{
    begin_hit(writer);
    segment_add_to(&writer->counts.throttled, 1);
    if (total < QUT_TRACE_TOTAL_COUNT - 1) {
        // At the innermost level others may add (feed_counts.c).
        if (__builtin_expect(writer->level == QUT_TRACE_LEVELS - 1, 0)) {
            segment_count_shared(&writer->totals[total], 1);
            segment_count_shared(&writer->totals[total + 1], amount);
        } else {
            segment_add_to(&writer->totals[total], 1);
            segment_add_to(&writer->totals[total + 1], amount);
        }
    }
    end_hit(writer);
}

void segment_cut(struct qut_trace_writer *writer, enum qut_trace_cut reason)
{
    segment_add_to(&writer->counts.cut[reason], 1);
}

void segment_add(struct qut_trace_writer *writer, uint32_t total, uint64_t amount)
{
    if (total < QUT_TRACE_TOTAL_COUNT)
        segment_add_to(&writer->totals[total], amount);
}

static void lose_shared(struct qut_trace_counts *counts, enum qut_trace_lost reason)
{
    segment_count_shared(&counts->hits, 1);
    segment_count_shared(&counts->lost[reason], 1);
}

void segment_lose_unowned(struct segment *segment, enum qut_trace_lost reason)
{
    lose_shared(&segment->counters->unowned, reason);
}

void segment_throttle_unowned(struct segment *segment)
{
    segment_count_shared(&segment->counters->unowned.hits, 1);
    segment_count_shared(&segment->counters->unowned.throttled, 1);
}

// ---- levels

// Stacks grow down: a frame that began an append is gone when its thread runs at or above it, on the same stack. What
// had interrupted it is gone with it.
static uint32_t heal(struct qut_trace_thread *thread, uint32_t depth, uintptr_t sp, uintptr_t low, uintptr_t high)
{
    uint32_t live = 0;
    if (sp < low || sp >= high)
        return depth;
    for (; live < depth; live++) {
        uintptr_t entry = (uintptr_t)thread->entry_sp[live];
        if (entry > SEGMENT_ENTRY_NONE && entry >= low && entry < high && sp >= entry)
            break;
    }
    while (depth > live)
        segment_put_entry(thread, --depth, 0);
    return depth;
}

struct qut_trace_writer *segment_begin_nested(struct qut_trace_thread *thread, uintptr_t sp, uintptr_t stack_low,
                                              uintptr_t stack_high)
{
    uint32_t depth = segment_depth(thread);
    if (__builtin_expect(depth != 0, 0))
        depth = heal(thread, depth, sp, stack_low, stack_high);
    if (__builtin_expect(depth >= QUT_TRACE_LEVELS, 0)) {
        lose_shared(&thread->writers[QUT_TRACE_LEVELS - 1].counts, QUT_TRACE_LOST_NESTED);
        return NULL;
    }
    segment_put_entry(thread, depth, sp ? sp : (uintptr_t)SEGMENT_ENTRY_NONE);
    segment_put32(&thread->depth, depth + 1);
    return &thread->writers[depth];
}

void segment_end_nested(struct qut_trace_thread *thread)
{
    uint32_t depth = segment_depth(thread);
    if (depth == 0)
        return;
    segment_put32(&thread->depth, depth - 1);
    segment_put_entry(thread, depth - 1, 0);
}

void segment_refuse_appends(struct qut_trace_thread *thread)
{
    for (uint32_t level = 0; level < QUT_TRACE_LEVELS; level++)
        segment_put_entry(thread, level, SEGMENT_ENTRY_NONE);
}

// ---- samples

static bool is_well_formed(const struct segment *segment, const struct qut_trace_writer *writer,
                           const struct segment_sample *sample)
{
    uint32_t node = sample->node;
    if (node != 0 && writer->recent[qut_trace_recent_index(node)] != node &&
        (node > segment->node_mask || !segment_get64(&segment->nodes[node])))
        return false;
    if (sample->kind > KIND_MAX || sample->flags > UINT8_MAX || sample->extra_count > QUT_TRACE_EXTRAS_MAX)
        return false;
    for (uint32_t i = 0; i < sample->extra_count; i++)
        if (sample->extras[i].key == 0 || sample->extras[i].key > KEY_MAX)
            return false;
    return true;
}

// Those that are not measured are 0 everywhere.
static void fill_metrics(const struct segment *segment, qut_trace_u64 *to, const qut_trace_u64 *last,
                         const uint64_t *metrics)
{
    for (uint32_t mask = segment->metric_mask; mask; mask &= mask - 1) {
        int i = __builtin_ctz(mask);
        // They only grow; one that falls keeps its last value.
        segment_fill64(&to[i], metrics && metrics[i] > last[i] ? metrics[i] : last[i]);
    }
}

// Where it is once and for all: compilers would find it anew for each of its words.
static inline struct qut_trace_commit *commit_at(struct qut_trace_writer *writer, uint32_t version)
{
    struct qut_trace_commit *commit = &writer->commits[version & 1];
    __asm__("" : "+r"(commit));
    return commit;
}

// Samples that equal the open record's last one: in place.
static inline void merge(const struct segment *segment, struct qut_trace_writer *writer, uint32_t version,
                         const struct qut_trace_commit *from, uint64_t time, uint64_t cpu_time, const uint64_t *metrics)
{
    struct qut_trace_commit *to = commit_at(writer, version + 1);
    segment_order_stores();
    bool are_twins = writer->twins;
    if (!are_twins) {
        // Word by word: readers may look.
        enum { WORDS = sizeof *to / sizeof(uint64_t) };
        const qut_trace_u64 *from_words = (const qut_trace_u64 *)from;
        for (int i = 0; i < WORDS; i++)
            segment_fill64((qut_trace_u64 *)to + i, from_words[i]);
    }
    segment_fill64(&to->merged, from->merged + 1);
    segment_fill64(&to->run.last_time, time);
    segment_fill64(&to->run.cpu_time, cpu_time);
    segment_put32(&to->run.count, from->run.count + 1);
    if (segment->metric_mask && (metrics || writer->still < STILL)) {
        if (metrics)
            segment_put32(&writer->still, 0);
        segment_order();
        fill_metrics(segment, to->run.metrics, from->run.metrics, metrics);
    }
    __atomic_store_n(&writer->version, version + 1, __ATOMIC_RELEASE);
    segment_order();
    if (!are_twins)
        segment_put32(&writer->twins, 1);
}

static inline void fill_run(struct qut_trace_run *run, const struct segment_sample *sample, uint64_t time,
                            uint64_t cpu_time)
{
    segment_fill64(&run->first_time, time);
    segment_fill64(&run->last_time, time);
    segment_fill64(&run->cpu_time, cpu_time);
    segment_put32(&run->node, sample->node);
    __atomic_store_n(&run->kind, sample->kind, __ATOMIC_RELAXED);
    __atomic_store_n(&run->flags, sample->flags, __ATOMIC_RELAXED);
}

// What nearly every sample needs, as store does it: the open record into the chunk, a new one opened.
// False: it is not as simple as that, and nothing was done.
// Not inline: where it does not do, others need the stack.
__attribute__((noinline)) static bool store_plain(const struct segment *segment, struct qut_trace_writer *writer,
                                                  uint32_t version, const struct segment_sample *sample, uint64_t time,
                                                  uint64_t cpu_time)
{
    const struct qut_trace_commit *from = commit_at(writer, version);
    struct qut_trace_commit *to = commit_at(writer, version + 1);
    uint32_t node = sample->node;
    if (from->run.count == 0 || from->used_bytes > segment->plain_bytes_max || time < from->run.last_time ||
        sample->extra_count || sample->kind > KIND_MAX || sample->flags > UINT8_MAX ||
        (node && (node > segment->node_mask || !segment_get64(&segment->nodes[node]))) ||
        writer->sealing | writer->taking)
        return false;
    struct segment_run run = segment_run_of(&from->run);
    struct segment_record_base base = {from->time, from->cpu_time, from->cpu_step, from->metrics, from->kind};
    uint32_t index = qut_trace_recent_index(run.node), chunk = from->chunk, used_bytes = from->used_bytes;
    bool is_recent = run.node != 0 && writer->recent[index] == run.node; // 0 in the table means: nothing
    uint32_t still = writer->still;
    bool are_still = !segment->metric_mask || (still == STILL && !sample->metrics);
    segment_put32(&writer->twins, 0);
    if (!are_still && sample->metrics)
        segment_put32(&writer->still, 0);
    if (!is_recent)
        segment_put32(&writer->recent[index], 0); // see is_recent in transaction.c
    segment_order();
    segment_order_stores();
    uint8_t *begin = (uint8_t *)(segment_chunk_at(segment, chunk - 1) + 1) + used_bytes;
    if (are_still)
        run.metrics = NULL;
    const uint8_t *end = segment_put_run_record(begin, segment, &base, &run, is_recent);
    segment_fill64(&to->stored, from->stored + 1);
    segment_fill64(&to->merged, from->merged);
    segment_fill64(&to->overwritten, from->overwritten);
    segment_put32(&to->chunk, chunk);
    segment_put32(&to->used_bytes, used_bytes + (uint32_t)(end - begin));
    segment_put32(&to->record_count, from->record_count + 1);
    segment_put32(&to->chunk_samples, from->chunk_samples + run.count);
    segment_fill64(&to->time, run.last_time);
    segment_fill64(&to->cpu_time, run.cpu_time);
    segment_fill64(&to->cpu_step, segment_cpu_step(run.cpu_time - base.cpu_time, run.count));
    segment_put32(&to->kind, run.kind);
    segment_put32(&to->chunk_seq, from->chunk_seq);
    fill_run(&to->run, sample, time, cpu_time);
    segment_put32(&to->run.count, 1);
    if (!are_still) {
        fill_metrics(segment, to->metrics, run.metrics, NULL);
        fill_metrics(segment, to->run.metrics, run.metrics, sample->metrics);
    }
    __atomic_store_n(&writer->version, version + 1, __ATOMIC_RELEASE);
    segment_order();
    if (!is_recent)
        segment_put32(&writer->recent[index], run.node);
    if (!are_still && !sample->metrics && still < STILL)
        segment_put32(&writer->still, still + 1);
    return true;
}

static bool open_run(struct segment_transaction *t, const struct segment_sample *sample, uint64_t time,
                     uint64_t cpu_time)
{
    if (!segment_make_room(t, segment_run_bytes_max(t->segment), time, cpu_time))
        return false;
    struct qut_trace_run *run = &t->to->run;
    fill_run(run, sample, time, cpu_time);
    if (t->segment->metric_mask)
        fill_metrics(t->segment, run->metrics, t->base.metrics, sample->metrics);
    t->run_count = 1;
    t->stored++;
    segment_transaction_commit(t);
    return true;
}

// A record of its own, never merged: with extras, or out of order. Out of order it stands at the time of the last one.
static bool put_alone(struct segment_transaction *t, const struct segment_sample *sample, uint64_t time,
                      uint64_t cpu_time)
{
    if (!segment_make_room(t, segment_run_bytes_max(t->segment) + 1 + QUT_TRACE_EXTRAS_MAX * 11, time, cpu_time))
        return false;
    bool is_earlier = time < t->base.time;
    uint64_t earlier_ns = is_earlier ? (t->base.time << QUT_TRACE_TIME_SHIFT) - sample->time_ns : 0;
    struct qut_trace_run *run = &t->to->run; // there is room in the copy that does not hold, and little on the stack
    fill_run(run, sample, is_earlier ? t->base.time : time, cpu_time);
    segment_put32(&run->count, 1);
    if (t->segment->metric_mask)
        fill_metrics(t->segment, run->metrics, t->base.metrics, sample->metrics);
    segment_put_run(t, run, sample->extras, sample->extra_count, earlier_ns);
    t->stored++;
    segment_transaction_commit(t);
    return true;
}

__attribute__((noinline)) static int store(struct segment *segment, struct qut_trace_thread *thread,
                                           struct qut_trace_writer *writer, const struct segment_sample *sample,
                                           uint64_t time, uint64_t cpu_time)
{
    if (!is_well_formed(segment, writer, sample))
        return lose(writer, QUT_TRACE_LOST_BAD);
    const struct qut_trace_commit *commit = segment_commit_of(writer);
    uint64_t last_time = commit->run.count ? commit->run.last_time : commit->time;
    bool is_earlier = time < last_time;
    if (is_earlier && sample->extra_count == QUT_TRACE_EXTRAS_MAX)
        return lose(writer, QUT_TRACE_LOST_BAD); // there is no room to say so
    struct segment_transaction t;
    segment_transaction_begin(&t, segment, thread, writer);
    bool is_stored = is_earlier || sample->extra_count ? put_alone(&t, sample, time, cpu_time)
                                                       : open_run(&t, sample, time, cpu_time);
    if (!is_stored)
        return lose(writer, QUT_TRACE_LOST_POOL);
    end_hit(writer);
    return QUT_STORED;
}

int segment_append(struct segment *segment, struct qut_trace_thread *thread, struct qut_trace_writer *writer,
                   const struct segment_sample *sample)
{
    enum { RUN_SAMPLES_MAX = 1 << 20 }; // so that all those of a chunk can be counted in 32 bits
    begin_hit(writer);
    uint64_t time = sample->time_ns >> QUT_TRACE_TIME_SHIFT;
    uint64_t cpu_time = segment->flags & QUT_TRACE_HAS_CPU_TIME ? sample->cpu_ns >> QUT_TRACE_TIME_SHIFT : 0;
    uint32_t version = segment_get32(&writer->version);
    const struct qut_trace_commit *commit = commit_at(writer, version);
    const struct qut_trace_run *run = &commit->run;
    // A time that goes back is a gap beyond all limits, as a number without sign.
    if (run->count - 1 < RUN_SAMPLES_MAX - 1 && run->node == sample->node && run->kind == sample->kind &&
        run->flags == sample->flags && !(sample->extra_count | (sample->flags & QUT_TRACE_SAMPLE_BEGINS)) &&
        time >= run->last_time && time - run->last_time <= segment->merge_gap_units) {
        merge(segment, writer, version, commit, time, cpu_time, sample->metrics);
        end_hit(writer);
        return QUT_STORED_MERGED;
    }
    if (__builtin_expect(!store_plain(segment, writer, version, sample, time, cpu_time), 0))
        return store(segment, thread, writer, sample, time, cpu_time);
    end_hit(writer);
    return QUT_STORED;
}

int segment_mark(struct segment *segment, struct qut_trace_thread *thread, struct qut_trace_writer *writer,
                 uint64_t time_ns, uint32_t mark_kind, uint64_t id, uint32_t string)
{
    enum { MARK_BYTES_MAX = 1 + 1 + 10 + 10 + 5 };
    segment_add_to(&writer->counts.marks, 1);
    uint64_t time = time_ns >> QUT_TRACE_TIME_SHIFT;
    struct segment_transaction t;
    if (mark_kind > UINT8_MAX) {
        segment_add_to(&writer->counts.lost_marks, 1);
        return QUT_STORED_NOT;
    }
    segment_transaction_begin(&t, segment, thread, writer);
    if (!segment_make_room(&t, MARK_BYTES_MAX, time, t.base.cpu_time)) {
        segment_add_to(&writer->counts.lost_marks, 1);
        return QUT_STORED_NOT;
    }
    segment_put_mark(&t, time > t.base.time ? time : t.base.time, mark_kind, id, string);
    segment_transaction_commit(&t);
    return QUT_STORED;
}
