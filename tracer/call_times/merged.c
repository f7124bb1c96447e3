// SPDX-License-Identifier: Apache-2.0
// A heap of threads by the time of their next event. Events of one thread stay in its order: where a signal's handler
// wrote its own between the place and the time of another one, the time is the later one.
#include <stdlib.h>

#include "tracer/call_times/inside.h"

struct source {
    struct call_events_reader *reader;
    struct call_event event;
    uint64_t ticks; // at least as large as of the event before
    uint32_t thread;
};

struct call_times_merged {
    const struct call_events *calls;
    struct source *heap;
    size_t count;
    uint64_t ns;
};

static bool is_before(const struct source *one, const struct source *other)
{
    return one->ticks != other->ticks ? one->ticks < other->ticks : one->thread < other->thread;
}

static void sink(struct call_times_merged *merged, size_t at)
{
    const struct source moved = merged->heap[at];
    for (size_t child; (child = 2 * at + 1) < merged->count; at = child) {
        if (child + 1 < merged->count && is_before(&merged->heap[child + 1], &merged->heap[child]))
            child++;
        if (!is_before(&merged->heap[child], &moved))
            break;
        merged->heap[at] = merged->heap[child];
    }
    merged->heap[at] = moved;
}

struct call_times_merged *call_times_merged_begin(const struct call_events *calls)
{
    struct call_times_merged *merged = calloc(1, sizeof *merged);
    if (!merged)
        return NULL;
    merged->calls = calls;
    merged->heap = calloc(calls->threads.count + 1, sizeof *merged->heap);
    for (size_t i = 0; merged->heap && i < calls->threads.count; i++) {
        if (!calls->threads.items[i].blocks.count)
            continue;
        struct source *source = &merged->heap[merged->count];
        *source = (struct source){.reader = call_events_begin(calls, (uint32_t)i), .thread = (uint32_t)i};
        if (!source->reader) {
            call_times_merged_end(merged);
            return NULL;
        }
        if (!call_events_next(source->reader, &source->event)) {
            call_events_end(source->reader);
            continue;
        }
        source->ticks = source->event.ticks;
        merged->count++;
    }
    if (!merged->heap) {
        free(merged);
        return NULL;
    }
    for (size_t i = merged->count / 2; i-- > 0;)
        sink(merged, i);
    return merged;
}

bool call_times_merged_next(struct call_times_merged *merged, struct call_times_event *event)
{
    if (!merged->count)
        return false;
    struct source *first = &merged->heap[0];
    const uint64_t ns = call_events_ns(merged->calls, first->ticks);
    merged->ns = ns > merged->ns ? ns : merged->ns;
    *event = (struct call_times_event){.event = first->event, .thread = first->thread, .ns = merged->ns};
    if (call_events_next(first->reader, &first->event)) {
        first->ticks = first->event.ticks > first->ticks ? first->event.ticks : first->ticks;
    } else {
        event->is_last = true;
        call_events_end(first->reader);
        *first = merged->heap[--merged->count];
    }
    if (merged->count)
        sink(merged, 0);
    return true;
}

void call_times_merged_end(struct call_times_merged *merged)
{
    for (size_t i = 0; i < merged->count; i++)
        call_events_end(merged->heap[i].reader);
    free(merged->heap);
    free(merged);
}
