// SPDX-License-Identifier: Apache-2.0
// Samples: most of them change what was prepared by the one before, in a few words and without a question that could
// be answered in two ways. All others go by a transaction.
#include "libqut/segment/append_inline.h"

enum { KIND_MAX = QUT_TRACE_OWN_KIND_FIRST + QUT_TRACE_OWN_KIND_COUNT - 1, KEY_MAX = 127 };
static_assert(3 + 4 + 10 + 5 + 10 + 10 + 1 + 10 * QUT_TRACE_METRIC_COUNT + 1 + QUT_TRACE_EXTRAS_MAX * 11 <=
                  QUT_TRACE_RECORD_BYTES_MAX,
              "no record is longer");

// ---- as most are

void segment_merge(const struct segment *segment, struct qut_trace_writer *writer, uint64_t time, uint64_t cpu_time,
                   const uint64_t *metrics)
{
    struct segment_copies copies = segment_copies_of(writer);
    const struct qut_trace_commit *from = copies.from;
    struct qut_trace_commit *to = copies.to;
    segment_begin_hit(writer);
    segment_order_stores();
    bool are_twins = writer->twins == SEGMENT_TWINS;
    if (!are_twins) {
        segment_put32(&writer->twins, 0);
        segment_order();
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
    if (segment->metric_mask && (metrics || writer->still < SEGMENT_STILL)) {
        if (metrics)
            segment_put32(&writer->still, 0);
        segment_order();
        segment_fill_metrics(segment, to->run.metrics, from->run.metrics, metrics);
    }
    segment_make_valid(writer);
    if (!are_twins)
        segment_put32(&writer->twins, SEGMENT_TWINS);
    segment_end_hit(writer);
}

int segment_put_with_all(const struct segment *segment, struct qut_trace_writer *writer, uint32_t node, uint32_t kind,
                         uint64_t time, uint64_t cpu_time, const uint64_t *metrics)
{
    return segment_put(segment, writer, node, kind, time, cpu_time, metrics, true, segment_is_innermost(writer));
}

// ---- all others

static bool is_well_formed(const struct segment *segment, const struct segment_sample *sample)
{
    if (!segment_has_node(segment, sample->node) || sample->kind > KIND_MAX || sample->flags > UINT8_MAX ||
        sample->extra_count > QUT_TRACE_EXTRAS_MAX)
        return false;
    for (uint32_t i = 0; i < sample->extra_count; i++)
        if (sample->extras[i].key == 0 || sample->extras[i].key > KEY_MAX)
            return false;
    return true;
}

static void fill_run_of(const struct segment_transaction *t, const struct segment_sample *sample, uint64_t time,
                        uint64_t cpu_time)
{
    struct qut_trace_run *run = &t->to->run;
    segment_fill_run(run, sample->node, sample->kind | (uint32_t)sample->flags << 16, time, cpu_time);
    if (t->segment->metric_mask)
        segment_fill_metrics(t->segment, run->metrics, t->to->metrics, sample->metrics);
}

static bool open_run(struct segment_transaction *t, const struct segment_sample *sample, uint64_t time,
                     uint64_t cpu_time)
{
    if (!segment_make_room(t, segment_run_bytes_max(t->segment), time, cpu_time))
        return false;
    fill_run_of(t, sample, time, cpu_time);
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
    bool is_earlier = time < t->to->time;
    uint64_t earlier_ns = is_earlier ? (t->to->time << QUT_TRACE_TIME_SHIFT) - sample->time_ns : 0;
    // There is room in the copy that does not hold, and little on the stack.
    fill_run_of(t, sample, is_earlier ? t->to->time : time, cpu_time);
    segment_put_run(t, &t->to->run, sample->extras, sample->extra_count, earlier_ns);
    t->stored++;
    segment_transaction_commit(t);
    return true;
}

__attribute__((noinline)) static int store(struct segment *segment, struct qut_trace_thread *thread,
                                           struct qut_trace_writer *writer, const struct segment_sample *sample,
                                           uint64_t time, uint64_t cpu_time)
{
    const struct qut_trace_commit *commit = segment_commit_of(writer);
    uint64_t last_time = commit->run.count ? commit->run.last_time : commit->time;
    bool is_earlier = time < last_time;
    segment_begin_hit(writer);
    // With all extras there is no room to say how much earlier it was.
    if (!is_well_formed(segment, sample) || (is_earlier && sample->extra_count == QUT_TRACE_EXTRAS_MAX)) {
        segment_end_lost(writer, QUT_TRACE_LOST_BAD);
        return QUT_STORED_NOT;
    }
    struct segment_transaction t;
    segment_transaction_begin(&t, segment, thread, writer);
    bool is_stored = is_earlier || sample->extra_count ? put_alone(&t, sample, time, cpu_time)
                                                       : open_run(&t, sample, time, cpu_time);
    if (!is_stored) {
        segment_end_lost(writer, QUT_TRACE_LOST_POOL);
        return QUT_STORED_NOT;
    }
    segment_end_hit(writer);
    return QUT_STORED;
}

int segment_append(struct segment *segment, struct qut_trace_thread *thread, struct qut_trace_writer *writer,
                   const struct segment_sample *sample)
{
    uint64_t time = sample->time_ns >> QUT_TRACE_TIME_SHIFT;
    uint64_t cpu_time = segment_cpu_units(segment, sample->cpu_ns);
    if (sample->extra_count == 0 && sample->kind <= KIND_MAX && sample->flags <= UINT8_MAX) {
        uint32_t kind = sample->kind | (uint32_t)sample->flags << 16;
        int stored =
            sample->metrics
                ? segment_put_with_all(segment, writer, sample->node, kind, time, cpu_time, sample->metrics)
                : segment_put_plain(segment, writer, segment_is_innermost(writer), sample->node, kind, time, cpu_time);
        if (__builtin_expect(stored != SEGMENT_NOT_PLAIN, 1))
            return stored;
    }
    return store(segment, thread, writer, sample, time, cpu_time);
}
