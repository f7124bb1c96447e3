// SPDX-License-Identifier: Apache-2.0
#include "tracer/traced/filter.h"

struct work {
    struct traced_filter *filter;
    const struct traced_filter_options *options;
    struct traced_filter_out *out;
};

static bool write_event(struct work *work, const struct qut_calls_event *event)
{
    struct qut_calls_event *place = BASE_ADD(work->out);
    if (place)
        *place = *event;
    return place != NULL;
}

// All that were entered before the `end`-th: in that order.
static bool write_until(struct work *work, size_t end)
{
    struct traced_filter *filter = work->filter;
    while (filter->written < end) {
        struct traced_open_call *open = &filter->open.items[filter->written++];
        open->is_kept = true;
        if (!write_event(work, &open->event))
            return false;
    }
    return true;
}

// Whoever has been open for long enough, and those around it. Most events find nobody: they do not look. (A handler's
// event may be a little earlier than that of the call it interrupted.)
static bool write_old(struct work *work, uint64_t now_ticks)
{
    struct traced_filter *filter = work->filter;
    size_t end = filter->open.count;
    if (now_ticks < filter->first_due_ticks)
        return true;
    filter->first_due_ticks = UINT64_MAX;
    for (; end > filter->written && filter->open.items[end - 1].due_ticks > now_ticks; end--)
        if (filter->open.items[end - 1].due_ticks < filter->first_due_ticks)
            filter->first_due_ticks = filter->open.items[end - 1].due_ticks;
    return write_until(work, end);
}

static bool add_open(struct work *work, const struct qut_calls_event *event)
{
    struct traced_filter *filter = work->filter;
    struct traced_open_call *call = traced_open_add(&filter->open, event);
    if (!call)
        return false;
    const uint64_t least_ticks = work->options->least_ticks(work->options->context, call->id);
    call->due_ticks =
        least_ticks < UINT64_MAX - event->time_ticks ? event->time_ticks + least_ticks : (uint64_t)UINT64_MAX;
    if (call->due_ticks < filter->first_due_ticks)
        filter->first_due_ticks = call->due_ticks;
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
    work->options->shorter(work->options->context, call->id);
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
    // The reader has the one before as open, and learns of its end by this one: so it comes, and all that are around
    // it.
    return add_open(work, event) && (!closes_written || write_until(work, filter->open.count));
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

bool traced_filter(struct traced_filter *filter, const struct traced_filter_options *options,
                   const struct qut_calls_event *events, size_t count, struct traced_filter_out *out)
{
    struct work work = {filter, options, out};
    for (size_t i = 0; i < count; i++) {
        if (!write_old(&work, events[i].time_ticks) ||
            !(qut_calls_word_is_exit(events[i].word) ? leave(&work, &events[i]) : enter(&work, &events[i])))
            return false;
    }
    return true;
}

bool traced_filter_end(struct traced_filter *filter, const struct traced_filter_options *options, uint64_t now_ticks,
                       struct traced_filter_out *out)
{
    struct work work = {filter, options, out};
    if (!write_old(&work, now_ticks))
        return false;
    for (size_t i = filter->written; i < filter->open.count; i++) {
        filter->left_out++;
        options->shorter(options->context, filter->open.items[i].id);
    }
    filter->open.count = filter->written;
    return true;
}

void traced_filter_free(struct traced_filter *filter)
{
    base_vector_free(&filter->open.vector);
}
