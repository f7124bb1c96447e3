// SPDX-License-Identifier: Apache-2.0
// Between the files of this folder: where things are, and what a writer's thread does with its own words.
#ifndef QUT_TRACE_INSIDE_H
#define QUT_TRACE_INSIDE_H

#include "libqut/trace/atomics.h"
#include "libqut/trace/record.h"
#include "libqut/trace/segment.h"

#pragma GCC visibility push(hidden)

enum { QUT_TRACE_RECORD_ROOM_BYTES = QUT_TRACE_CHUNK_BYTES - (int)sizeof(struct qut_trace_chunk) };

static inline struct qut_trace_thread *qut_thread_at(const struct qut_segment *segment, uint32_t slot)
{
    return (struct qut_trace_thread *)(segment->threads + (size_t)slot * segment->thread_stride_bytes);
}

static inline uint32_t qut_slot_of(const struct qut_segment *segment, const struct qut_trace_thread *thread)
{
    return (uint32_t)((size_t)((const uint8_t *)thread - segment->threads) / segment->thread_stride_bytes);
}

static inline struct qut_trace_chunk *qut_chunk_at(const struct qut_segment *segment, uint32_t index)
{
    return (struct qut_trace_chunk *)(segment->chunks + (size_t)index * QUT_TRACE_CHUNK_BYTES);
}

// seq (40) | thread slot (16) | level (2) | state (2)
static inline uint64_t qut_directory_word(uint64_t seq, uint32_t slot, uint32_t level, uint32_t state)
{
    return seq << QUT_TRACE_CHUNK_SEQ_SHIFT | (uint64_t)slot << QUT_TRACE_CHUNK_SLOT_SHIFT |
           level << QUT_TRACE_CHUNK_LEVEL_SHIFT | state;
}

static inline uint32_t qut_word_state(uint64_t word)
{
    return (uint32_t)word & ((1u << QUT_TRACE_CHUNK_STATE_BITS) - 1);
}

static inline uint32_t qut_word_level(uint64_t word)
{
    return (uint32_t)(word >> QUT_TRACE_CHUNK_LEVEL_SHIFT) & 3;
}

static inline uint32_t qut_word_slot(uint64_t word)
{
    return (uint32_t)(word >> QUT_TRACE_CHUNK_SLOT_SHIFT) & 0xffff;
}

static inline uint64_t qut_word_seq(uint64_t word)
{
    return word >> QUT_TRACE_CHUNK_SEQ_SHIFT;
}

static inline struct qut_trace_commit *qut_commit_of(struct qut_trace_writer *writer)
{
    return &writer->commits[qut_get32(&writer->version) & 1];
}

static inline uint64_t qut_lost_of(const struct qut_trace_counts *counts)
{
    uint64_t sum = 0;
    for (int i = 0; i < QUT_TRACE_LOST_COUNT; i++)
        sum += qut_get64(&counts->lost[i]);
    return sum;
}

// ---- writer.c

// From now on every append of the thread is nested too deep.
void qut_refuse_appends(struct qut_trace_thread *thread);
// A hit that a handler jumped out of is counted as that.
void qut_settle(struct qut_trace_writer *writer);

// ---- pool.c: chunks nobody has, and those that can be had again. An index + 1; 0: none. Bounded.

uint32_t qut_pool_pop(struct qut_segment *segment);
void qut_pool_push(struct qut_segment *segment, uint32_t chunk);
// Has a chunk for the writer: its directory word says so from now on, and `taking` names it.
uint32_t qut_pool_take(struct qut_segment *segment, uint32_t slot, struct qut_trace_writer *writer);
// Whether it did, and a handler jumped out before the chunk was made use of: then it is taken first.
bool qut_pool_has_taken(const struct qut_segment *segment, uint32_t slot, const struct qut_trace_writer *writer);
// Of a sealed one, for when its writer needs room.
void qut_ring_push(struct qut_segment *segment, uint32_t slot, struct qut_trace_writer *writer, uint32_t chunk);

// ---- transaction.c

// What an append is about to change: copied out of the commit that holds, put into the other one, and valid at once
// with the next `version`. Records are written behind used_bytes on the way.
struct qut_transaction {
    struct qut_segment *segment;
    struct qut_trace_thread *thread;
    struct qut_trace_writer *writer;
    const struct qut_trace_commit *from;
    struct qut_trace_commit *to;
    struct qut_record_base base;
    uint64_t stored, merged, overwritten;
    uint32_t version, chunk, chunk_seq, used_bytes, record_count, chunk_samples;
    uint32_t run_count; // of the open record in `to`
    uint32_t recent_count;
    uint32_t recent[2]; // nodes that the records written so far put into the table of recent ones
};

// Begins, and makes the open record, if there is one, a record like others: there always is room for it.
void qut_transaction_begin(struct qut_transaction *transaction, struct qut_segment *segment,
                           struct qut_trace_thread *thread, struct qut_trace_writer *writer);
void qut_transaction_commit(struct qut_transaction *transaction);

// For records: there must be room.
void qut_put_run(struct qut_transaction *transaction, const struct qut_trace_run *open_run,
                 const struct qut_segment_extra *extras, uint32_t extra_count, uint64_t earlier_ns);
void qut_put_mark(struct qut_transaction *transaction, uint64_t time, uint32_t mark_kind, uint64_t id, uint32_t string);

// ---- chunk.c

// Makes room for need_bytes more. Where a chunk has to be sealed for that, what was begun is committed, and begun anew.
// False: there is no chunk to be had, and no transaction any more.
bool qut_make_room(struct qut_transaction *transaction, uint32_t need_bytes, uint64_t time, uint64_t cpu_time);
// Seals what the writer has open, or gives it back if nothing is in it.
void qut_close_chunk(struct qut_segment *segment, struct qut_trace_thread *thread, struct qut_trace_writer *writer);

#pragma GCC visibility pop

#endif
