// SPDX-License-Identifier: Apache-2.0
// Stacks that are given frame by frame, from the outermost one on, and samples of their nodes. Everything here is
// signal-safe.
#include <string.h>

#include "libqut/os/task.h"
#include "libqut/segment/append_inline.h"
#include "libqut/trace/feed_entry_inline.h"

// For steps, which are no hits: what is remembered between them is the thread's.
static struct feed_scratch *steps_of(struct feed_entry *entry)
{
    return feed_own_slot(entry) ? feed_scratch(entry, 0) : NULL;
}

// What the next qut_trace_append_node says.
static void note_cut(struct feed *feed, struct feed_scratch *steps, uint32_t parent)
{
    if (!steps || steps->is_cut)
        return;
    atomic_store_explicit(&feed->had_cuts, true, memory_order_relaxed);
    steps->cut_node = parent;
    steps->is_cut = true;
}

uint32_t qut_trace_node(uint32_t parent, uintptr_t pc, uint32_t stack_flags)
{
    struct feed_entry entry;
    if (!feed_enter(&entry, (uintptr_t)__builtin_frame_address(0)))
        return 0;
    struct feed_scratch *steps = steps_of(&entry);
    uint32_t node = 0;
    if (steps && !(steps->is_cut && parent == 0)) {
        struct feed_stack stack = {.feed = entry.feed, .modules = entry.modules};
        feed_begin_stack(&stack);
        node = feed_frame_node(&stack, parent, pc, stack_flags & QUT_STACK_INTERRUPTED ? QUT_FRAME_INTERRUPTED : 0u);
    }
    if (node == 0)
        note_cut(entry.feed, steps, parent);
    feed_leave(&entry);
    return node;
}

uint32_t qut_trace_label_node(uint32_t parent, const char *name)
{
    struct feed_entry entry;
    if (!feed_enter(&entry, (uintptr_t)__builtin_frame_address(0)))
        return 0;
    struct feed_scratch *steps = steps_of(&entry);
    struct segment *segment = &entry.feed->segment;
    uint32_t node = 0;
    if (steps && !(steps->is_cut && parent == 0)) {
        uint32_t string = segment_string(segment, name, strlen(name));
        if (string || !*name)
            node = segment_node(segment, parent, string, QUT_TRACE_CLASS_LABEL << QUT_TRACE_CLASS_SHIFT);
    }
    if (node == 0)
        note_cut(entry.feed, steps, parent);
    feed_leave(&entry);
    return node;
}

// ---- samples

// No extras, and a kind and flags that there are.
static inline bool is_plain(const struct qut_event *event)
{
    enum { KINDS = QUT_TRACE_OWN_KIND_FIRST + QUT_TRACE_OWN_KIND_COUNT };
    static_assert((KINDS & (KINDS - 1)) == 0, "so a mask says which there are");
    const uint32_t flags = QUT_EVENT_ON_CPU | QUT_EVENT_OFF_CPU | QUT_EVENT_BEGINS;
    return ((event->kind & ~(uint32_t)(KINDS - 1)) | (event->flags & ~flags) | event->extra_count) == 0;
}

// The same with the time that it is.
__attribute__((noinline)) static int append_now(uint32_t node, const struct qut_event *event)
{
    struct qut_event timed = *event;
    timed.time_ns = os_now_ns();
    return qut_trace_append_node(node, &timed);
}

// Called for each sample of a tracer that keeps its own stacks: no more than what has to be done. As feed_store_node,
// for a thread that is registered, has a slot and nothing under way, and a sample without extras.
int qut_trace_append_node(uint32_t node, const struct qut_event *event)
{
    if (__builtin_expect(!event || !feed_enter_outermost((uintptr_t)__builtin_frame_address(0)), 0))
        return feed_store_node(node, event);
    int result = SEGMENT_NOT_PLAIN;
    struct feed_entry entry = {.feed = feed_now()};
    struct feed *feed = entry.feed;
    if (__builtin_expect(feed && is_plain(event) && feed_has_slot(feed) && feed_know_slot(&entry) &&
                             segment_entry_at(entry.slot, 0) == 0 &&
                             !atomic_load_explicit(&feed->had_cuts, memory_order_relaxed),
                         1)) {
        if (__builtin_expect(event->time_ns == 0, 0)) {
            feed_leave_outermost();
            return append_now(node, event);
        }
        uint64_t cpu_ns = event->cpu_ns;
        struct qut_trace_writer *writer = segment_begin_outermost(entry.slot, (uintptr_t)__builtin_frame_address(0));
        if (__builtin_expect(cpu_ns == 0 && (feed->segment.flags & QUT_TRACE_HAS_CPU_TIME), 0))
            cpu_ns = os_thread_cpu_ns();
        const struct segment *segment = &feed->segment;
        uint32_t kind = event->kind | event->flags << 16;
        uint64_t time = event->time_ns >> QUT_TRACE_TIME_SHIFT, cpu_time = segment_cpu_units(segment, cpu_ns);
        if (event->metrics)
            result = segment_put_with_all(segment, writer, node, kind, time, cpu_time, event->metrics);
        else
            result = segment_put_plain(segment, writer, false, node, kind, time, cpu_time);
        segment_end_of(entry.slot);
    }
    feed_leave_outermost();
    return __builtin_expect(result != SEGMENT_NOT_PLAIN, 1) ? result : feed_store_node(node, event);
}
