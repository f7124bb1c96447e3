// SPDX-License-Identifier: Apache-2.0
// Which slot a thread has. Two words of its own say it: the slot and which trace it is of; so what is left from a trace
// that was closed is never taken for one of the next.
#include <errno.h>

#include "libqut/os/task.h"
#include "libqut/trace/feed.h"

// In QUT_OS_WORD_TRACE: slot + 1, or
#define FORKING UINTPTR_MAX // no slot until the fork is done

static uintptr_t word_before_fork, generation_before_fork; // of the thread that forks, under the registry's lock

// ---- entering

static bool is_on_stack_of(const struct qut_thread *thread, uintptr_t address)
{
    return address >= thread->stack_limit && address < thread->stack_high;
}

// A handler that interrupted the append jumped out of it: what runs now runs further out on the same stack. It cannot
// be a handler on a stack of its own that lies within the thread's.
static bool was_jumped_out_of(const struct qut_thread *thread, uintptr_t here)
{
    uintptr_t low, high;
    return thread->append_sp && here >= thread->append_sp && is_on_stack_of(thread, here) &&
           is_on_stack_of(thread, thread->append_sp) && !qut_os_alternate_stack(&low, &high);
}

bool qut_feed_enter(struct qut_feed_entry *entry, uintptr_t here)
{
    struct qut_feed_current *current = atomic_load_explicit(&qut_feed_current, memory_order_acquire);
    if (!atomic_load_explicit(&current->feed, memory_order_relaxed))
        return false;
    struct qut_thread *thread = qut_thread_self();
    entry->thread = thread;
    if (thread && atomic_load_explicit(&thread->walking, memory_order_relaxed) != 0 && was_jumped_out_of(thread, here))
        atomic_store_explicit(&thread->walking, 0, memory_order_relaxed);
    entry->modules = qut_modules_enter(thread);
    if (thread && atomic_load_explicit(&thread->walking, memory_order_relaxed) == 1)
        thread->append_sp = here;
    entry->feed = qut_feed_now();
    if (entry->feed)
        return true;
    qut_feed_leave(entry);
    return false;
}

void qut_feed_leave(struct qut_feed_entry *entry)
{
    struct qut_thread *thread = entry->thread;
    if (thread && atomic_load_explicit(&thread->walking, memory_order_relaxed) == 1)
        thread->append_sp = 0;
    qut_modules_leave(thread);
}

// ---- slots

static struct qut_trace_thread *slot_at(const struct qut_feed *feed, uintptr_t index)
{
    return (struct qut_trace_thread *)(void *)(feed->segment.threads + index * feed->segment.thread_stride_bytes);
}

static uintptr_t index_of(const struct qut_feed *feed, const struct qut_trace_thread *slot)
{
    return (uintptr_t)((const uint8_t *)slot - feed->segment.threads) / feed->segment.thread_stride_bytes;
}

static bool has_slot(const struct qut_feed *feed)
{
    return qut_os_thread_word(QUT_OS_WORD_TRACE_GENERATION) == feed->generation;
}

static void set_slot(const struct qut_feed *feed, const struct qut_trace_thread *slot)
{
    qut_os_set_thread_word(QUT_OS_WORD_TRACE_GENERATION, 0);
    atomic_signal_fence(memory_order_seq_cst);
    qut_os_set_thread_word(QUT_OS_WORD_TRACE, index_of(feed, slot) + 1);
    atomic_signal_fence(memory_order_seq_cst);
    qut_os_set_thread_word(QUT_OS_WORD_TRACE_GENERATION, feed->generation);
}

// `name` NULL: upkeep will find it out.
__attribute__((noinline)) static struct qut_trace_thread *take_slot(struct qut_feed *feed, const char *name)
{
    uint64_t now_ns = qut_os_now_ns();
    struct qut_trace_thread *slot = qut_segment_thread_begin(&feed->segment, qut_os_thread_id(), name, now_ns);
    if (!slot) {
        // Some may belong to threads that are no more.
        if (atomic_exchange_explicit(&feed->is_short_of_slots, 1, memory_order_acq_rel) == 0)
            qut_registry_ring();
        return NULL;
    }
    if (!has_slot(feed)) {
        set_slot(feed, slot);
        return slot;
    }
    // A handler was quicker.
    qut_segment_thread_end(&feed->segment, slot, now_ns);
    return slot_at(feed, qut_os_thread_word(QUT_OS_WORD_TRACE) - 1);
}

struct qut_trace_thread *qut_feed_slot(struct qut_feed *feed, enum qut_trace_lost *reason)
{
    *reason = QUT_TRACE_LOST_THREADS;
    if (!has_slot(feed))
        return take_slot(feed, NULL);
    uintptr_t word = qut_os_thread_word(QUT_OS_WORD_TRACE);
    if (word != FORKING)
        return slot_at(feed, word - 1);
    *reason = QUT_TRACE_LOST_FORK;
    return NULL;
}

struct qut_feed_scratch *qut_feed_scratch(const struct qut_feed *feed, const struct qut_trace_thread *slot,
                                          uint32_t level)
{
    size_t number = index_of(feed, slot) * QUT_TRACE_LEVELS + level, depth = feed->depth_max;
    uint8_t *part = feed->scratch + number * feed->scratch_stride_bytes;
    struct qut_feed_scratch *scratch = (struct qut_feed_scratch *)(void *)part;
    if (__builtin_expect(scratch->notes.flags != NULL, 1))
        return scratch;
    uintptr_t *pcs = (uintptr_t *)(void *)(part + (sizeof *scratch + 63) / 64 * 64);
    scratch->notes.pcs = pcs;
    scratch->cached_pcs = pcs + depth;
    scratch->cached_nodes = (uint32_t *)(pcs + 2 * depth);
    scratch->notes.max = depth;
    atomic_signal_fence(memory_order_release);
    scratch->notes.flags = (uint8_t *)(scratch->cached_nodes + depth);
    return scratch;
}

// Whether an append under way seems to be gone: it began further in than this one.
static bool looks_jumped_out(const struct qut_trace_thread *slot, uintptr_t here)
{
    bool looks = false;
    for (uint32_t level = qut_segment_depth(slot); level-- > 0;)
        looks = looks || here >= slot->entry_sp[level];
    return looks;
}

bool qut_feed_begin(struct qut_feed_entry *entry, uintptr_t here)
{
    const struct qut_thread *thread = entry->thread;
    enum qut_trace_lost reason;
    entry->writer = NULL;
    entry->slot = qut_feed_slot(entry->feed, &reason);
    if (!entry->slot) {
        qut_segment_lose_unowned(&entry->feed->segment, reason);
        return false;
    }
    uintptr_t low = thread ? thread->stack_limit : 0, high = thread ? thread->stack_high : 0, unused;
    // Only then do the bounds count. A handler may run on a stack of its own that lies within the thread's.
    if (high && looks_jumped_out(entry->slot, here) && qut_os_alternate_stack(&unused, &unused))
        low = high = 0;
    entry->writer = qut_segment_begin(entry->slot, here, low, high);
    return entry->writer != NULL;
}

// ---- beginning and end

// name NULL: it has none.
static int register_with(const char *name)
{
    struct qut_feed_entry entry;
    if (!qut_feed_enter(&entry, (uintptr_t)__builtin_frame_address(0)))
        return -EINVAL;
    enum qut_trace_lost reason;
    struct qut_trace_thread *slot = has_slot(entry.feed) ? qut_feed_slot(entry.feed, &reason) : NULL;
    if (slot && name)
        qut_segment_thread_rename(slot, name);
    if (!slot && !has_slot(entry.feed))
        slot = take_slot(entry.feed, name);
    qut_feed_leave(&entry);
    return slot ? 0 : -EAGAIN;
}

// Slots of dead threads that nobody has met yet: here where nobody else looks for them.
static void look_for_dead(void)
{
    qut_os_lock(&qut_registry.work);
    qut_feed_maintain();
    qut_os_unlock(&qut_registry.work);
}

int qut_trace_thread_register(void)
{
    char name[QUT_OS_NAME_BYTES];
    if (!qut_feed_now())
        return -EINVAL;
    int result = qut_thread_register();
    if (result != 0)
        return result;
    bool has_name = qut_os_thread_name(qut_os_thread_id(), name);
    result = register_with(has_name ? name : NULL);
    if (result != -EAGAIN)
        return result;
    look_for_dead();
    return register_with(has_name ? name : NULL);
}

void qut_feed_thread_ends(void)
{
    struct qut_feed_entry entry;
    if (!qut_feed_enter(&entry, (uintptr_t)__builtin_frame_address(0)))
        return;
    uintptr_t word = qut_os_thread_word(QUT_OS_WORD_TRACE);
    if (has_slot(entry.feed) && word != FORKING) {
        qut_os_set_thread_word(QUT_OS_WORD_TRACE_GENERATION, 0);
        atomic_signal_fence(memory_order_seq_cst);
        qut_segment_thread_end(&entry.feed->segment, slot_at(entry.feed, word - 1), qut_os_now_ns());
    }
    qut_feed_leave(&entry);
}

// ---- fork

void qut_feed_fork_begins(void)
{
    const struct qut_feed *feed = qut_feed_now();
    generation_before_fork = qut_os_thread_word(QUT_OS_WORD_TRACE_GENERATION);
    word_before_fork = qut_os_thread_word(QUT_OS_WORD_TRACE);
    qut_os_set_thread_word(QUT_OS_WORD_TRACE, FORKING);
    atomic_signal_fence(memory_order_seq_cst);
    qut_os_set_thread_word(QUT_OS_WORD_TRACE_GENERATION, feed ? feed->generation : 0);
}

void qut_feed_fork_ends(bool in_child)
{
    qut_os_set_thread_word(QUT_OS_WORD_TRACE_GENERATION, 0);
    atomic_signal_fence(memory_order_seq_cst);
    qut_os_set_thread_word(QUT_OS_WORD_TRACE, word_before_fork);
    atomic_signal_fence(memory_order_seq_cst);
    qut_os_set_thread_word(QUT_OS_WORD_TRACE_GENERATION, in_child ? 0 : generation_before_fork);
}
