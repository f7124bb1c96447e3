// SPDX-License-Identifier: Apache-2.0
// Between the files of this folder: where things are, and what a writer's thread does with its own words.
#ifndef QUT_SEGMENT_INSIDE_H
#define QUT_SEGMENT_INSIDE_H

#include "libqut/segment/atomics_inline.h"
#include "libqut/segment/record_inline.h"
#include "libqut/segment/segment.h"

#pragma GCC visibility push(hidden)

enum { SEGMENT_STILL = 2 }; // what `still` comes to
enum { SEGMENT_TRACE_RECORD_ROOM_BYTES = QUT_TRACE_CHUNK_BYTES - (int)sizeof(struct qut_trace_chunk) };

static inline struct qut_trace_thread *segment_thread_at(const struct segment *segment, uint32_t slot)
{
    return (struct qut_trace_thread *)(segment->threads + (size_t)slot * segment->thread_stride_bytes);
}

static inline uint32_t segment_slot_of(const struct segment *segment, const struct qut_trace_thread *thread)
{
    return (uint32_t)((size_t)((const uint8_t *)thread - segment->threads) / segment->thread_stride_bytes);
}

static inline struct qut_trace_chunk *segment_chunk_at(const struct segment *segment, uint32_t index)
{
    return (struct qut_trace_chunk *)(segment->chunks + (size_t)index * QUT_TRACE_CHUNK_BYTES);
}

// seq (40) | thread slot (16) | level (2) | state (2)
static inline uint64_t segment_directory_word(uint64_t seq, uint32_t slot, uint32_t level, uint32_t state)
{
    return seq << QUT_TRACE_CHUNK_SEQ_SHIFT | (uint64_t)slot << QUT_TRACE_CHUNK_SLOT_SHIFT |
           level << QUT_TRACE_CHUNK_LEVEL_SHIFT | state;
}

static inline uint32_t segment_word_state(uint64_t word)
{
    return (uint32_t)word & ((1u << QUT_TRACE_CHUNK_STATE_BITS) - 1);
}

static inline uint32_t segment_word_level(uint64_t word)
{
    return (uint32_t)(word >> QUT_TRACE_CHUNK_LEVEL_SHIFT) & 3;
}

static inline uint32_t segment_word_slot(uint64_t word)
{
    return (uint32_t)(word >> QUT_TRACE_CHUNK_SLOT_SHIFT) & 0xffff;
}

static inline uint64_t segment_word_seq(uint64_t word)
{
    return word >> QUT_TRACE_CHUNK_SEQ_SHIFT;
}

static inline struct qut_trace_commit *segment_commit_of(struct qut_trace_writer *writer)
{
    return &writer->commits[segment_get32(&writer->version) & 1];
}

static inline uint64_t segment_lost_of(const struct qut_trace_counts *counts)
{
    uint64_t sum = 0;
    for (int i = 0; i < QUT_TRACE_LOST_COUNT; i++)
        sum += segment_get64(&counts->lost[i]);
    return sum;
}

// ---- segment_writer.c

// From now on every append of the thread is nested too deep.
void segment_refuse_appends(struct qut_trace_thread *thread);
// A hit that a handler jumped out of is counted as that.
void segment_settle(struct qut_trace_writer *writer);

// Where none was jumped out of.
static inline void segment_begin_hit_at_once(struct qut_trace_writer *writer, bool is_innermost)
{
    segment_put32(&writer->under_way, 1);
    segment_order();
    // What is nested too deep is counted with the innermost writer.
    if (__builtin_expect(is_innermost, 0))
        segment_count_shared(&writer->counts.hits, 1);
    else
        segment_add_to(&writer->counts.hits, 1);
    segment_order();
}

static inline bool segment_is_innermost(const struct qut_trace_writer *writer)
{
    return writer->level == QUT_TRACE_LEVELS - 1;
}

static inline void segment_begin_hit(struct qut_trace_writer *writer)
{
    if (__builtin_expect(writer->under_way != 0, 0))
        segment_settle(writer);
    segment_begin_hit_at_once(writer, segment_is_innermost(writer));
}

static inline void segment_end_hit(struct qut_trace_writer *writer)
{
    segment_order();
    segment_put32(&writer->under_way, 0);
}

void segment_end_lost(struct qut_trace_writer *writer, enum qut_trace_lost reason); // a hit that began

// ---- chunk_pool.c: free chunks, and those that can be had again. An index + 1; 0: none. Bounded.

uint32_t segment_pool_pop(struct segment *segment);
void segment_pool_push(struct segment *segment, uint32_t chunk);
// Has a chunk for the writer: its directory word says so from now on, and `taking` names it.
uint32_t segment_pool_take(struct segment *segment, uint32_t slot, struct qut_trace_writer *writer);
// Whether it did, and a handler jumped out before the chunk was made use of: then it is taken first.
bool segment_pool_has_taken(const struct segment *segment, uint32_t slot, const struct qut_trace_writer *writer);
// Of a sealed one, for when its writer needs room.
void segment_ring_push(struct segment *segment, uint32_t slot, struct qut_trace_writer *writer, uint32_t chunk);

// ---- transaction.c

// What an append is about to change: copied out of the commit that holds, put into the other one, and valid at once
// with the next `version`. Records are written behind used_bytes on the way.
struct segment_transaction {
    struct segment *segment;
    struct qut_trace_thread *thread;
    struct qut_trace_writer *writer;
    const struct qut_trace_commit *from;
    struct qut_trace_commit *to; // what records count from, and metrics, stand there from the beginning on
    uint64_t stored, merged, overwritten;
    uint32_t version, chunk, chunk_seq, used_bytes, record_count, chunk_samples;
    uint32_t run_count; // of the open record in `to`
    uint32_t recent_count;
    uint32_t recent[2]; // nodes that the records written so far put into the table of recent ones
};

// Begins, and makes the open record, if there is one, a record like others: there always is room for it.
void segment_transaction_begin(struct segment_transaction *transaction, struct segment *segment,
                               struct qut_trace_thread *thread, struct qut_trace_writer *writer);
void segment_transaction_commit(struct segment_transaction *transaction);

// For records: there must be room.
void segment_put_run(struct segment_transaction *transaction, const struct qut_trace_run *run,
                     const struct segment_extra *extras, uint32_t extra_count, uint64_t earlier_ns);
void segment_put_mark(struct segment_transaction *transaction, uint64_t time, uint32_t mark_kind, uint64_t id,
                      uint32_t string);

// ---- chunk.c

// Makes room for need_bytes more. Where a chunk has to be sealed for that, what was begun is committed, and begun anew.
// False: there is no chunk to be had, and no transaction any more.
bool segment_make_room(struct segment_transaction *transaction, uint32_t need_bytes, uint64_t time, uint64_t cpu_time);
// Seals what the writer has open, or gives it back if nothing is in it.
void segment_close_chunk(struct segment *segment, struct qut_trace_thread *thread, struct qut_trace_writer *writer);

#pragma GCC visibility pop

#endif
