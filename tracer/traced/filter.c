// SPDX-License-Identifier: Apache-2.0
#include "tracer/traced/filter.h"

struct work {
    struct traced_filter *filter;
    struct traced_filter_out *out;
    void (*shorter)(void *context, uint32_t function);
    void *context;
};

static bool write_event(struct work *work, const struct qut_calls_event *event)
{
    struct qut_calls_event *place = BASE_ADD(work->out);
    if (place)
        *place = *event;
    return place != NULL;
}

// Whoever has been open for so long: in the order in which they were entered.
static bool write_old(struct work *work, uint64_t now_ticks, uint64_t least_ticks)
{
    struct traced_filter *filter = work->filter;
    while (filter->written < filter->open.count) {
        struct traced_open_call *open = &filter->open.items[filter->written];
        // A handler's event may be a little earlier than that of the call it interrupted.
        if (now_ticks < open->event.time_ticks || now_ticks - open->event.time_ticks < least_ticks)
            break;
        if (!write_event(work, &open->event))
            return false;
        open->is_kept = true;
        filter->written++;
    }
    return true;
}

// Calls end: those that were kept back are left out. What was written stays open for the reader, who closes it by the
// same rule.
static void note_closed(void *context, const struct traced_open_call *call)
{
    struct work *work = context;
    if (call->is_kept) {
        work->filter->written--;
        return;
    }
    work->filter->left_out++;
    work->shorter(work->context, call->id);
}

static bool enter(struct work *work, const struct qut_calls_event *event)
{
    struct traced_filter *filter = work->filter;
    const uint64_t slot = qut_calls_word_slot(event->word);
    traced_open_close_inner(&filter->open, slot, note_closed, work);
    struct traced_open_call *before = traced_open_at(&filter->open, slot);
    const bool closes_written = before && before->is_kept;
    if (before)
        traced_open_drop(&filter->open, before, note_closed, work);
    if (!traced_open_add(&filter->open, event))
        return false;
    if (!closes_written)
        return true;
    // The reader has the one before as open, and learns of its end by this one: so it comes, and all that are around
    // it.
    while (filter->written < filter->open.count) {
        struct traced_open_call *next = &filter->open.items[filter->written++];
        next->is_kept = true;
        if (!write_event(work, &next->event))
            return false;
    }
    return true;
}

static bool leave(struct work *work, const struct qut_calls_event *event)
{
    struct traced_filter *filter = work->filter;
    const uint64_t slot = qut_calls_word_slot(event->word);
    traced_open_close_inner(&filter->open, slot, note_closed, work);
    struct traced_open_call *call = traced_open_at(&filter->open, slot);
    // One that was entered before we looked, or whose enter was lost.
    const bool is_written = !call || call->is_kept;
    if (call)
        traced_open_drop(&filter->open, call, note_closed, work);
    return !is_written || write_event(work, event);
}

bool traced_filter(struct traced_filter *filter, const struct qut_calls_event *events, size_t count,
                   uint64_t least_ticks, struct traced_filter_out *out,
                   void (*shorter)(void *context, uint32_t function), void *context)
{
    struct work work = {filter, out, shorter, context};
    for (size_t i = 0; i < count; i++) {
        if (!write_old(&work, events[i].time_ticks, least_ticks) ||
            !(qut_calls_word_is_exit(events[i].word) ? leave(&work, &events[i]) : enter(&work, &events[i])))
            return false;
    }
    return true;
}

bool traced_filter_end(struct traced_filter *filter, uint64_t now_ticks, uint64_t least_ticks,
                       struct traced_filter_out *out, void (*shorter)(void *context, uint32_t function), void *context)
{
    struct work work = {filter, out, shorter, context};
    if (!write_old(&work, now_ticks, least_ticks))
        return false;
    for (size_t i = filter->written; i < filter->open.count; i++) {
        filter->left_out++;
        shorter(context, filter->open.items[i].id);
    }
    filter->open.count = filter->written;
    return true;
}

void traced_filter_free(struct traced_filter *filter)
{
    base_vector_free(&filter->open.vector);
}
