// SPDX-License-Identifier: Apache-2.0
// The beginning and the end of an append, inline: most of what an append of a known node takes is here.
#ifndef QUT_TRACE_FEED_ENTRY_H
#define QUT_TRACE_FEED_ENTRY_H

#include "libqut/trace/feed.h"

#pragma GCC visibility push(hidden)

// In QUT_OS_WORD_TRACE: slot + 1, or
#define QUT_FEED_FORKING UINTPTR_MAX // no slot until the fork is done

// ---- feed_slot.c: what is rare

// Where an append that a handler jumped out of left its mark, that is taken away.
void qut_feed_heal(struct qut_thread *thread, uintptr_t here);
// False: all are taken. name NULL: upkeep will find it out.
bool qut_feed_take_slot(struct qut_feed *feed, const char *name);
// NULL: the hit was counted as lost.
struct qut_trace_writer *qut_feed_begin_nested(const struct qut_thread *thread, struct qut_trace_thread *slot,
                                               uintptr_t here);
void qut_feed_prepare_scratch(const struct qut_feed *feed, struct qut_feed_scratch *scratch);

// ---- feed_counts.c

// To both sums, of a hit that has no writer.
void qut_feed_add_beside(struct qut_feed_entry *entry, uint32_t total, uint64_t amount);

// ---- entering

static inline void qut_feed_leave(const struct qut_feed_entry *entry)
{
    struct qut_thread *thread = entry->thread;
    if (thread && atomic_load_explicit(&thread->walking, memory_order_relaxed) == 1)
        thread->append_sp = 0;
    qut_modules_leave(thread);
}

// False: no trace is open; else qut_feed_leave has to come. Signal-safe.
static inline bool qut_feed_enter(struct qut_feed_entry *entry, uintptr_t here)
{
    if (!atomic_load_explicit(&atomic_load_explicit(&qut_feed_current, memory_order_acquire)->feed,
                              memory_order_relaxed))
        return false;
    struct qut_thread *thread = qut_thread_self();
    entry->thread = thread;
    if (thread && __builtin_expect(atomic_load_explicit(&thread->walking, memory_order_relaxed) != 0, 0))
        qut_feed_heal(thread, here);
    entry->modules = qut_modules_enter(thread);
    if (thread && atomic_load_explicit(&thread->walking, memory_order_relaxed) == 1)
        thread->append_sp = here;
    entry->feed = qut_feed_now();
    if (__builtin_expect(entry->feed != NULL, 1))
        return true;
    qut_feed_leave(entry);
    return false;
}

// ---- slots

// A trace that was closed has another generation: what is left from it is never taken for the next one's.
static inline bool qut_feed_has_slot(const struct qut_feed *feed)
{
    return qut_os_thread_word(QUT_OS_WORD_TRACE_GENERATION) == feed->generation;
}

static inline bool qut_feed_know_slot(struct qut_feed_entry *entry)
{
    const struct qut_segment *segment = &entry->feed->segment;
    atomic_signal_fence(memory_order_seq_cst); // behind qut_feed_has_slot: a handler may give it one in between
    uintptr_t word = qut_os_thread_word(QUT_OS_WORD_TRACE);
    entry->slot = NULL;
    entry->reason = QUT_TRACE_LOST_FORK;
    if (__builtin_expect(word == QUT_FEED_FORKING, 0))
        return false;
    entry->slot_index = (uint32_t)(word - 1);
    entry->slot =
        (struct qut_trace_thread *)(void *)(segment->threads + (size_t)(word - 1) * segment->thread_stride_bytes);
    return true;
}

// The calling thread's, which it gets now if it has none. False: it has none.
static inline bool qut_feed_slot(struct qut_feed_entry *entry)
{
    if (__builtin_expect(qut_feed_has_slot(entry->feed), 1) || qut_feed_take_slot(entry->feed, NULL))
        return qut_feed_know_slot(entry);
    entry->slot = NULL;
    entry->reason = QUT_TRACE_LOST_THREADS;
    return false;
}

// The slot and the writer. False: the hit was counted as lost. Else qut_segment_end has to come.
static inline bool qut_feed_begin(struct qut_feed_entry *entry, uintptr_t here)
{
    entry->writer = NULL;
    if (__builtin_expect(!qut_feed_slot(entry), 0)) {
        qut_segment_lose_unowned(&entry->feed->segment, entry->reason);
        return false;
    }
    bool is_nested = __builtin_expect(qut_segment_entry_at(entry->slot, 0) != 0, 0);
    entry->writer = is_nested ? qut_feed_begin_nested(entry->thread, entry->slot, here)
                              : qut_segment_begin(entry->slot, here, 0, 0);
    return entry->writer != NULL;
}

// ---- memory

static inline struct qut_feed_scratch *qut_feed_scratch(const struct qut_feed_entry *entry, size_t level)
{
    const struct qut_feed *feed = entry->feed;
    size_t number = (size_t)entry->slot_index * QUT_TRACE_LEVELS + level;
    struct qut_feed_scratch *scratch =
        (struct qut_feed_scratch *)(void *)(feed->scratch + number * feed->scratch_stride_bytes);
    if (__builtin_expect(scratch->notes.flags == NULL, 0))
        qut_feed_prepare_scratch(feed, scratch);
    return scratch;
}

#pragma GCC visibility pop

#endif
