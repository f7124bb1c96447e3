// SPDX-License-Identifier: Apache-2.0
#include <string.h>

#include "libqut/include/qut/trace.h"
#include "libqut/segment/inside.h"

enum { SETTLE_TRIES_MAX = 64 };

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

void segment_end_lost(struct qut_trace_writer *writer, enum qut_trace_lost reason)
{
    segment_add_to(&writer->counts.lost[reason], 1);
    segment_end_hit(writer);
}

void segment_lose(struct qut_trace_writer *writer, enum qut_trace_lost reason)
{
    segment_begin_hit(writer);
    segment_end_lost(writer, reason);
}

void segment_skip(struct qut_trace_writer *writer)
{
    segment_begin_hit(writer);
    segment_add_to(&writer->counts.throttled, 1);
    segment_end_hit(writer);
}

void segment_throttle(struct qut_trace_writer *writer, uint32_t total, uint64_t amount)
{
    segment_begin_hit(writer);
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
    segment_end_hit(writer);
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
    return &thread->writers[depth];
}

void segment_end_nested(struct qut_trace_thread *thread)
{
    uint32_t depth = segment_depth(thread);
    if (depth == 0)
        return;
    segment_put_entry(thread, depth - 1, 0);
}

void segment_refuse_appends(struct qut_trace_thread *thread)
{
    for (uint32_t level = 0; level < QUT_TRACE_LEVELS; level++)
        segment_put_entry(thread, level, SEGMENT_ENTRY_NONE);
}

// ---- marks

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
    if (!segment_make_room(&t, MARK_BYTES_MAX, time, t.to->cpu_time)) {
        segment_add_to(&writer->counts.lost_marks, 1);
        return QUT_STORED_NOT;
    }
    segment_put_mark(&t, time > t.to->time ? time : t.to->time, mark_kind, id, string);
    segment_transaction_commit(&t);
    return QUT_STORED;
}
