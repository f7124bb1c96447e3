// SPDX-License-Identifier: Apache-2.0
// The beginning and the end of an append, inline: most of what an append of a known node takes is here.
#ifndef QUT_TRACE_FEED_ENTRY_INLINE_H
#define QUT_TRACE_FEED_ENTRY_INLINE_H

#include "libqut/trace/feed.h"

#pragma GCC visibility push(hidden)

// In OS_WORD_TRACE: slot + 1, or
#define FEED_FORKING UINTPTR_MAX // no slot until the fork is done

// ---- feed_slot.c: what is rare

// Where an append that a handler jumped out of left its mark, that is taken away.
void feed_heal(struct runtime_thread *thread, uintptr_t here);
// False: all are taken. name NULL: upkeep will find it out.
bool feed_take_slot(struct feed *feed, const char *name);
// NULL: the hit was counted as lost.
struct qut_trace_writer *feed_begin_nested(const struct runtime_thread *thread, struct qut_trace_thread *slot,
                                           uintptr_t here);
void feed_prepare_scratch(const struct feed *feed, struct feed_scratch *scratch);

// ---- feed_counts.c

// To both sums, of a hit that has no writer.
void feed_add_beside(struct feed_entry *entry, uint32_t total, uint64_t amount);

// ---- entering

static inline void feed_leave(const struct feed_entry *entry)
{
    struct runtime_thread *thread = entry->thread;
    if (thread && atomic_load_explicit(&thread->walking, memory_order_relaxed) == 1)
        thread->append_sp = 0;
    modules_leave(thread);
}

// False: no trace is open; else feed_leave has to come. Signal-safe.
static inline bool feed_enter(struct feed_entry *entry, uintptr_t here)
{
    if (!atomic_load_explicit(&atomic_load_explicit(&feed_current, memory_order_acquire)->feed, memory_order_relaxed))
        return false;
    struct runtime_thread *thread = runtime_thread_self();
    entry->thread = thread;
    if (thread && __builtin_expect(atomic_load_explicit(&thread->walking, memory_order_relaxed) != 0, 0))
        feed_heal(thread, here);
    entry->modules = modules_enter(thread);
    if (thread && atomic_load_explicit(&thread->walking, memory_order_relaxed) == 1)
        thread->append_sp = here;
    entry->feed = feed_now();
    if (__builtin_expect(entry->feed != NULL, 1))
        return true;
    feed_leave(entry);
    return false;
}

// The same two of the outermost append of a registered thread, of which all is known that they ask. False: it is
// none, and nothing was done. Else feed_leave_outermost has to come.
static inline bool feed_enter_outermost(uintptr_t here)
{
    struct runtime_thread *thread = runtime_thread_self();
    if (__builtin_expect(!thread || atomic_load_explicit(&thread->walking, memory_order_relaxed) != 0, 0))
        return false;
    atomic_store_explicit(&thread->walking, 1, memory_order_relaxed);
    os_fence_light();
    thread->append_sp = here;
    return true;
}

static inline void feed_leave_outermost(void)
{
    struct runtime_thread *thread = runtime_thread_self(); // who holds it on to here has a register less
    thread->append_sp = 0;
    uint32_t walks = atomic_load_explicit(&thread->walks, memory_order_relaxed);
    atomic_store_explicit(&thread->walks, walks + 1, memory_order_release);
    atomic_store_explicit(&thread->walking, 0, memory_order_release);
}

// ---- slots

// A trace that was closed has another generation: what is left from it is never taken for the next one's.
static inline bool feed_has_slot(const struct feed *feed)
{
    return os_thread_word(OS_WORD_TRACE_GENERATION) == feed->generation;
}

static inline bool feed_know_slot(struct feed_entry *entry)
{
    const struct segment *segment = &entry->feed->segment;
    atomic_signal_fence(memory_order_seq_cst); // behind feed_has_slot: a handler may give it one in between
    uintptr_t word = os_thread_word(OS_WORD_TRACE);
    entry->slot = NULL;
    entry->reason = QUT_TRACE_LOST_FORK;
    if (__builtin_expect(word == FEED_FORKING, 0))
        return false;
    entry->slot_index = (uint32_t)(word - 1);
    entry->slot =
        (struct qut_trace_thread *)(void *)(segment->threads + (size_t)(word - 1) * segment->thread_stride_bytes);
    return true;
}

// The calling thread's, which it gets now if it has none. False: it has none.
static inline bool feed_own_slot(struct feed_entry *entry)
{
    if (__builtin_expect(feed_has_slot(entry->feed), 1) || feed_take_slot(entry->feed, NULL))
        return feed_know_slot(entry);
    entry->slot = NULL;
    entry->reason = QUT_TRACE_LOST_THREADS;
    return false;
}

// The slot and the writer. False: the hit was counted as lost. Else segment_end_of has to come.
static inline bool feed_begin(struct feed_entry *entry, uintptr_t here)
{
    entry->writer = NULL;
    if (__builtin_expect(!feed_own_slot(entry), 0)) {
        segment_lose_unowned(&entry->feed->segment, entry->reason);
        return false;
    }
    bool is_nested = __builtin_expect(segment_entry_at(entry->slot, 0) != 0, 0);
    entry->writer =
        is_nested ? feed_begin_nested(entry->thread, entry->slot, here) : segment_begin(entry->slot, here, 0, 0);
    return entry->writer != NULL;
}

// ---- memory

static inline struct feed_scratch *feed_scratch(const struct feed_entry *entry, size_t level)
{
    const struct feed *feed = entry->feed;
    size_t number = (size_t)entry->slot_index * QUT_TRACE_LEVELS + level;
    struct feed_scratch *scratch = (struct feed_scratch *)(void *)(feed->scratch + number * feed->scratch_stride_bytes);
    if (__builtin_expect(scratch->notes.flags == NULL, 0))
        feed_prepare_scratch(feed, scratch);
    return scratch;
}

#pragma GCC visibility pop

#endif
