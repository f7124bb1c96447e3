// SPDX-License-Identifier: Apache-2.0
#include "libqut/segment/inside.h"

static uint8_t *record_end(const struct segment_transaction *t)
{
    return (uint8_t *)(segment_chunk_at(t->segment, t->chunk - 1) + 1) + t->used_bytes;
}

// Whether the reader's table, after the records written so far, has the node at its index. Where it has not, the
// writer's has nothing there until the record is committed: should a handler jump out of here, that is never wrong.
static bool is_recent(struct segment_transaction *t, uint32_t node)
{
    uint32_t index = qut_trace_recent_index(node), there = t->writer->recent[index];
    for (uint32_t i = 0; i < t->recent_count; i++)
        if (qut_trace_recent_index(t->recent[i]) == index)
            there = t->recent[i];
    if (node && there == node) // node 0 is never recent: in the table that means nothing
        return true;
    segment_put32(&t->writer->recent[index], 0);
    t->recent[t->recent_count++] = node;
    return false;
}

static void add_record(struct segment_transaction *t, const uint8_t *end, uint64_t time)
{
    t->used_bytes += (uint32_t)(end - record_end(t));
    t->record_count++;
    segment_fill64(&t->to->time, time);
}

static void copy_metrics(const struct segment_transaction *t, const qut_trace_u64 *from)
{
    if (t->segment->metric_mask)
        for (int i = 0; i < QUT_TRACE_METRIC_COUNT; i++)
            segment_fill64(&t->to->metrics[i], from[i]);
}

void segment_put_run(struct segment_transaction *t, const struct qut_trace_run *run, const struct segment_extra *extras,
                     uint32_t extra_count, uint64_t earlier_ns)
{
    uint8_t *begin = record_end(t);
    uint32_t kind = segment_record_kind(segment_run_kind(run));
    struct segment_record_head head = segment_record_head(run->node, is_recent(t, run->node));
    if (kind != t->to->kind)
        head = segment_head_with_kind(head, kind);
    uint8_t *end = segment_put_run_record(begin, t->segment, head, run, t->to, true);
    if (extra_count == 1 && segment_is_told(t->segment, extras)) {
        *begin |= QUT_TRACE_TAG_TOLD;
        end = segment_put_told(end, extras->value, run->cpu_time - t->to->cpu_time);
        extra_count = 0;
    }
    if (extra_count || earlier_ns) {
        *begin |= QUT_TRACE_TAG_EXTRAS;
        end = segment_put_extras(end, extras, extra_count, earlier_ns);
    }
    add_record(t, end, run->last_time);
    t->chunk_samples += run->count;
    segment_fill64(&t->to->cpu_step, segment_cpu_step(run->cpu_time - t->to->cpu_time, run->count));
    segment_fill64(&t->to->cpu_time, run->cpu_time);
    segment_put32(&t->to->kind, kind);
    copy_metrics(t, run->metrics);
}

void segment_put_mark(struct segment_transaction *t, uint64_t time, uint32_t mark_kind, uint64_t id, uint32_t string)
{
    add_record(t, segment_put_mark_record(record_end(t), mark_kind, time - t->to->time, id, string), time);
}

// A handler jumped out while the writer's chunk was being sealed: is it?
static bool is_still_open(const struct segment_transaction *t)
{
    if (t->chunk == 0 || t->chunk > t->segment->chunk_count)
        return false;
    uint64_t word = segment_get64(&t->segment->directory[t->chunk - 1]);
    return segment_word_state(word) == QUT_TRACE_CHUNK_OPEN && (uint32_t)segment_word_seq(word) == t->chunk_seq &&
           segment_word_slot(word) == segment_slot_of(t->segment, t->thread) &&
           segment_word_level(word) == t->writer->level;
}

void segment_transaction_begin(struct segment_transaction *t, struct segment *segment, struct qut_trace_thread *thread,
                               struct qut_trace_writer *writer)
{
    uint32_t version = segment_get32(&writer->version);
    const struct qut_trace_commit *from = &writer->commits[version & 1];
    t->segment = segment;
    t->thread = thread;
    t->writer = writer;
    t->from = from;
    t->to = &writer->commits[(version + 1) & 1];
    t->version = version;
    t->stored = from->stored;
    t->merged = from->merged;
    t->overwritten = from->overwritten;
    t->chunk = from->chunk;
    t->chunk_seq = from->chunk_seq;
    t->used_bytes = from->used_bytes;
    t->record_count = from->record_count;
    t->chunk_samples = from->chunk_samples;
    t->run_count = 0;
    t->recent_count = 0;
    segment_put32(&writer->twins, 0);
    segment_put32(&writer->still,
                  segment->metric_mask ? 0 : SEGMENT_STILL); // none is measured: they are what they were
    segment_order();
    segment_order_stores(); // the other copy may be read until its `version` is over
    segment_fill64(&t->to->time, from->time);
    segment_fill64(&t->to->cpu_time, from->cpu_time);
    segment_fill64(&t->to->cpu_step, from->cpu_step);
    segment_put32(&t->to->kind, from->kind);
    copy_metrics(t, from->metrics);
    if (__builtin_expect(writer->sealing != 0, 0) && !is_still_open(t))
        t->chunk = 0;
    if (from->run.count)
        segment_put_run(t, &from->run, NULL, 0, 0);
}

void segment_transaction_commit(struct segment_transaction *t)
{
    struct qut_trace_writer *writer = t->writer;
    struct qut_trace_commit *to = t->to;
    segment_fill64(&to->stored, t->stored);
    segment_fill64(&to->merged, t->merged);
    segment_fill64(&to->overwritten, t->overwritten);
    segment_put32(&to->chunk, t->chunk);
    segment_put32(&to->chunk_seq, t->chunk_seq);
    segment_put32(&to->used_bytes, t->used_bytes);
    segment_put32(&to->record_count, t->record_count);
    segment_put32(&to->chunk_samples, t->chunk_samples);
    segment_put32(&to->run.count, t->run_count);
    // Release: a reader that sees the version sees the copy, and the bytes that it counts.
    __atomic_store_n(&writer->version, t->version + 1, __ATOMIC_RELEASE);
    segment_order();
    // Of two with one index only the later: it is what the reader has. The earlier one must not be there even for an
    // instruction, in which a handler could jump out.
    for (uint32_t i = 0; i < t->recent_count; i++) {
        uint32_t index = qut_trace_recent_index(t->recent[i]);
        bool is_last = i + 1 == t->recent_count || qut_trace_recent_index(t->recent[i + 1]) != index;
        if (is_last)
            segment_put32(&writer->recent[index], t->recent[i]);
    }
    if (__builtin_expect((writer->sealing | writer->taking) != 0, 0)) {
        segment_put32(&writer->sealing, 0);
        segment_put32(&writer->taking, 0);
    }
}
