// SPDX-License-Identifier: Apache-2.0
// Which slot a thread has. Two words of its own say it: the slot, and which trace it is of.
#include <errno.h>
#include <string.h>

#include "libqut/os/task.h"
#include "libqut/trace/feed_entry_inline.h"

static uintptr_t word_before_fork, generation_before_fork; // of the thread that forks, under the registry's lock

// ---- entering

static bool is_on_stack_of(const struct runtime_thread *thread, uintptr_t address)
{
    return address >= thread->stack_limit && address < thread->stack_high;
}

// A handler that interrupted the append jumped out of it: what runs now runs further out on the same stack. It cannot
// be a handler on a stack of its own that lies within the thread's.
static bool was_jumped_out_of(const struct runtime_thread *thread, uintptr_t here)
{
    uintptr_t low, high;
    return thread->append_sp && here >= thread->append_sp && is_on_stack_of(thread, here) &&
           is_on_stack_of(thread, thread->append_sp) && !os_alternate_stack(&low, &high);
}

void feed_heal(struct runtime_thread *thread, uintptr_t here)
{
    if (was_jumped_out_of(thread, here))
        atomic_store_explicit(&thread->walking, 0, memory_order_relaxed);
}

// ---- slots

static uintptr_t index_of(const struct feed *feed, const struct qut_trace_thread *slot)
{
    return (uintptr_t)((const uint8_t *)slot - feed->segment.threads) / feed->segment.thread_stride_bytes;
}

static bool take_slot(struct feed *feed, const char *name)
{
    const uint64_t now_ns = feed->begun_ns ? feed->begun_ns : os_now_ns();
    const struct qut_trace_thread *slot = segment_thread_begin(&feed->segment, os_thread_id(), name, now_ns);
    if (!slot)
        return false;
    feed->begun_ns = 0;
    os_set_thread_word(OS_WORD_TRACE, index_of(feed, slot) + 1);
    os_set_thread_word(OS_WORD_TRACE_GENERATION, feed->generation);
    return true;
}

bool feed_take_slot(struct feed *feed, const char *name)
{
    // What its last destructors do would be those of another thread, without a name.
    if (os_thread_word(OS_WORD_ENDING))
        return false;
    // A handler in here would take another slot, and one that jumped out would leave one that no thread has or gets.
    // Once in a thread's life two system calls are not too much against that. (With handlers let in, and nested nine
    // deep, four threads were seen to take all of 16 slots; and one that had two was ended twice, when it was
    // another's.)
    uint64_t blocked = os_block_signals();
    bool has_slot = feed_has_slot(feed) || take_slot(feed, name);
    os_restore_signals(blocked);
    // Some may belong to threads that are no more.
    if (!has_slot && atomic_exchange_explicit(&feed->is_short_of_slots, 1, memory_order_acq_rel) == 0)
        modules_registry_ring();
    return has_slot;
}

void feed_prepare_scratch(const struct feed *feed, struct feed_scratch *scratch)
{
    size_t depth = feed->depth_max;
    uintptr_t *pcs = (uintptr_t *)(void *)((uint8_t *)scratch + (sizeof *scratch + 63) / 64 * 64);
    scratch->notes.pcs = pcs;
    scratch->cached_pcs = pcs + depth;
    scratch->notes.sps = pcs + 2 * depth;
    scratch->cached_nodes = (uint32_t *)(pcs + 3 * depth);
    scratch->notes.max = depth;
    atomic_signal_fence(memory_order_release);
    scratch->notes.flags = (uint8_t *)(scratch->cached_nodes + depth);
}

// ---- nested in another one

// Whether an append under way seems to be gone: it began further in than this one.
static bool looks_jumped_out(const struct qut_trace_thread *slot, uintptr_t here)
{
    bool looks = false;
    for (uint32_t level = segment_depth(slot); level-- > 0;)
        looks = looks || here >= slot->entry_sp[level];
    return looks;
}

struct qut_trace_writer *feed_begin_nested(const struct runtime_thread *thread, struct qut_trace_thread *slot,
                                           uintptr_t here)
{
    uintptr_t low = thread ? thread->stack_limit : 0, high = thread ? thread->stack_high : 0, unused;
    // Only then do the bounds count. A handler may run on a stack of its own that lies within the thread's.
    if (high && looks_jumped_out(slot, here) && os_alternate_stack(&unused, &unused))
        low = high = 0;
    return segment_begin(slot, here, low, high);
}

// ---- beginning and end

// name NULL: it has none.
static int register_with(const char *name)
{
    struct feed_entry entry;
    if (!feed_enter(&entry, (uintptr_t)__builtin_frame_address(0)))
        return -EINVAL;
    bool had_slot = feed_has_slot(entry.feed);
    bool has_slot = (had_slot || feed_take_slot(entry.feed, name)) && feed_know_slot(&entry);
    if (had_slot && has_slot && name)
        segment_thread_rename(entry.slot, name);
    feed_leave(&entry);
    return has_slot ? 0 : -EAGAIN;
}

// Slots of dead threads that were not met yet: here where no other part looks for them.
static void look_for_dead(void)
{
    os_lock(&modules_registry.work);
    feed_maintain();
    os_unlock(&modules_registry.work);
}

int qut_trace_thread_register(void)
{
    char name[OS_NAME_BYTES];
    if (!feed_now())
        return -EINVAL;
    int result = qut_thread_register();
    if (result != 0)
        return result;
    bool has_name = os_own_thread_name(name);
    result = register_with(has_name ? name : NULL);
    if (result != -EAGAIN)
        return result;
    look_for_dead();
    return register_with(has_name ? name : NULL);
}

void feed_look_at_own_name(struct qut_trace_thread *slot)
{
    char name[OS_NAME_BYTES], known[QUT_TRACE_NAME_BYTES];
    segment_thread_name(slot, known);
    if (os_own_thread_name(name) && strncmp(name, known, sizeof name) != 0)
        segment_thread_rename(slot, name);
}

// A thread of some milliseconds has told its name to nobody: it began with that of the thread that made it.
void feed_thread_ends(void)
{
    struct feed_entry entry;
    if (!feed_enter(&entry, (uintptr_t)__builtin_frame_address(0)))
        return;
    if (feed_has_slot(entry.feed) && feed_know_slot(&entry)) {
        feed_look_at_own_name(entry.slot);
        os_set_thread_word(OS_WORD_TRACE_GENERATION, 0);
        atomic_signal_fence(memory_order_seq_cst);
        segment_thread_end(&entry.feed->segment, entry.slot, os_now_ns());
    }
    feed_leave(&entry);
}

// ---- fork

void feed_fork_begins(void)
{
    const struct feed *feed = feed_now();
    generation_before_fork = os_thread_word(OS_WORD_TRACE_GENERATION);
    word_before_fork = os_thread_word(OS_WORD_TRACE);
    os_set_thread_word(OS_WORD_TRACE, FEED_FORKING);
    atomic_signal_fence(memory_order_seq_cst);
    os_set_thread_word(OS_WORD_TRACE_GENERATION, feed ? feed->generation : 0);
}

void feed_fork_ends(bool in_child)
{
    os_set_thread_word(OS_WORD_TRACE_GENERATION, 0);
    atomic_signal_fence(memory_order_seq_cst);
    os_set_thread_word(OS_WORD_TRACE, word_before_fork);
    atomic_signal_fence(memory_order_seq_cst);
    os_set_thread_word(OS_WORD_TRACE_GENERATION, in_child ? 0 : generation_before_fork);
}
