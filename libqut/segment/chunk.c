// SPDX-License-Identifier: Apache-2.0
#include <string.h>

#include "formats/qut_table_check.h"
#include "libqut/segment/inside.h"

// What the writer has open, and nothing of it in an open record, becomes complete.
static void seal(struct segment *segment, struct qut_trace_thread *thread, struct qut_trace_writer *writer)
{
    const struct qut_trace_commit *commit = segment_commit_of(writer);
    uint32_t slot = segment_slot_of(segment, thread);
    struct qut_trace_chunk *chunk = segment_chunk_at(segment, commit->chunk - 1);
    segment_put32(&writer->sealing, 1);
    segment_order();
    chunk->used_bytes = commit->used_bytes;
    chunk->record_count = commit->record_count;
    segment_put32(&chunk->sample_count, commit->chunk_samples);
    chunk->end_time = commit->time;
    segment_thread_name(thread, chunk->name); // it may have got its own since the chunk was opened
    chunk->lost_at_end = segment_lost_of(&writer->counts);
    chunk->checksum = 0;
    chunk->checksum = qut_table_checksum(chunk, sizeof *chunk + commit->used_bytes);
    // Release: a reader that sees it sealed sees all of it.
    __atomic_store_n(&segment->directory[commit->chunk - 1],
                     segment_directory_word(chunk->seq, slot, writer->level, QUT_TRACE_CHUNK_SEALED), __ATOMIC_RELEASE);
    segment_ring_push(segment, slot, writer, commit->chunk);
}

static void write_header(struct segment *segment, const struct segment_transaction *t, uint32_t index)
{
    struct qut_trace_chunk *chunk = segment_chunk_at(segment, index);
    const struct qut_trace_thread *thread = t->thread;
    segment_order_stores(); // readers of what it had before look at the directory again
    chunk->magic = QUT_TRACE_CHUNK_MAGIC;
    chunk->used_bytes = 0;
    chunk->record_count = 0;
    segment_put32(&chunk->sample_count, 0);
    chunk->end_time = 0;
    chunk->lost_at_end = 0;
    chunk->checksum = 0;
    chunk->seq = segment_word_seq(segment_get64(&segment->directory[index]));
    chunk->thread_uid = thread->uid;
    chunk->tid = thread->tid;
    chunk->level = (uint8_t)t->writer->level;
    chunk->flags = (uint8_t)segment->flags;
    chunk->base_kind = (uint16_t)t->to->kind;
    chunk->metric_mask = segment->metric_mask;
    chunk->base_time = t->to->time;
    chunk->base_cpu_time = t->to->cpu_time;
    for (int i = 0; i < QUT_TRACE_METRIC_COUNT; i++)
        chunk->base_metrics[i] = t->to->metrics[i];
    chunk->lost_before = segment_lost_of(&t->writer->counts);
    segment_thread_name(thread, chunk->name);
}

static bool open_chunk(struct segment_transaction *t, uint64_t time, uint64_t cpu_time)
{
    struct segment *segment = t->segment;
    struct qut_trace_writer *writer = t->writer;
    uint32_t chunk = segment_pool_take(segment, segment_slot_of(segment, t->thread), writer);
    if (!chunk)
        return false;
    if (t->to->time == 0) { // its first record counts from itself
        segment_fill64(&t->to->time, time);
        segment_fill64(&t->to->cpu_time, cpu_time);
    }
    segment_fill64(&t->to->cpu_step, 0); // a chunk stands for itself
    write_header(segment, t, chunk - 1);
    for (int i = 0; i < QUT_TRACE_RECENT_COUNT; i++)
        segment_put32(&writer->recent[i], 0);
    t->chunk = chunk;
    t->chunk_seq = (uint32_t)segment_chunk_at(segment, chunk - 1)->seq;
    t->used_bytes = t->record_count = t->chunk_samples = 0;
    t->overwritten += writer->taking_samples;
    return true;
}

static void give_up_chunk(struct segment_transaction *t)
{
    t->chunk = t->chunk_seq = t->used_bytes = t->record_count = t->chunk_samples = 0;
}

bool segment_make_room(struct segment_transaction *t, uint32_t need_bytes, uint64_t time, uint64_t cpu_time)
{
    if (t->chunk && t->used_bytes + need_bytes <= SEGMENT_TRACE_RECORD_ROOM_BYTES)
        return true;
    struct segment *segment = t->segment;
    struct qut_trace_thread *thread = t->thread;
    struct qut_trace_writer *writer = t->writer;
    if (t->chunk) {
        segment_transaction_commit(t);
        seal(segment, thread, writer);
        segment_transaction_begin(t, segment, thread, writer);
    }
    if (open_chunk(t, time, cpu_time))
        return true;
    if (t->from->chunk) {
        give_up_chunk(t);
        segment_transaction_commit(t);
    }
    return false;
}

static void close_current(struct segment *segment, struct qut_trace_thread *thread, struct qut_trace_writer *writer)
{
    struct segment_transaction t;
    segment_transaction_begin(&t, segment, thread, writer);
    if (!t.chunk)
        return;
    uint32_t chunk = t.chunk;
    if (t.record_count == 0) {
        give_up_chunk(&t);
        segment_transaction_commit(&t);
        __atomic_store_n(&segment->directory[chunk - 1], 0, __ATOMIC_RELEASE);
        segment_pool_push(segment, chunk);
        return;
    }
    segment_transaction_commit(&t);
    seal(segment, thread, writer);
    segment_transaction_begin(&t, segment, thread, writer);
    give_up_chunk(&t);
    segment_transaction_commit(&t);
}

void segment_close_chunk(struct segment *segment, struct qut_trace_thread *thread, struct qut_trace_writer *writer)
{
    close_current(segment, thread, writer);
    if (!segment_pool_has_taken(segment, segment_slot_of(segment, thread), writer))
        return;
    // It becomes the writer's, so that what was in it is counted as overwritten, and is given back empty.
    struct segment_transaction t;
    segment_transaction_begin(&t, segment, thread, writer);
    if (open_chunk(&t, 0, 0))
        segment_transaction_commit(&t);
    close_current(segment, thread, writer);
}
