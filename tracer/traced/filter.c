// SPDX-License-Identifier: Apache-2.0
#include "tracer/traced/filter.h"

enum { STACK_BYTES = 8 << 20 }; // slots that are farther apart are of different stacks

struct traced_open {
    struct qut_calls_event event; // the enter
    uint64_t slot;
    uint32_t id;
    bool is_written;
};

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
        struct traced_open *open = &filter->open.items[filter->written];
        // A handler's event may be a little earlier than that of the call it interrupted.
        if (now_ticks < open->event.time_ticks || now_ticks - open->event.time_ticks < least_ticks)
            break;
        if (!write_event(work, &open->event))
            return false;
        open->is_written = true;
        filter->written++;
    }
    return true;
}

// Calls end: those that were kept back are left out. What was written stays open for the reader, who closes it by the
// same rule.
static void forget_one(struct work *work, size_t index)
{
    struct traced_filter *filter = work->filter;
    if (filter->open.items[index].is_written) {
        filter->written--;
    } else {
        filter->left_out++;
        work->shorter(work->context, filter->open.items[index].id);
    }
    for (size_t i = index + 1; i < filter->open.count; i++)
        filter->open.items[i - 1] = filter->open.items[i];
    filter->open.count--;
}

// Calls further in than `slot` on its stack.
static void forget_inner(struct work *work, uint64_t slot)
{
    struct traced_filter *filter = work->filter;
    for (size_t i = filter->open.count; i-- > 0;) {
        const uint64_t inner = filter->open.items[i].slot;
        if (inner < slot && slot - inner < STACK_BYTES)
            forget_one(work, i);
        else if (inner >= slot && inner - slot < STACK_BYTES)
            break;
    }
}

static size_t find(const struct traced_filter *filter, uint64_t slot)
{
    for (size_t i = filter->open.count; i-- > 0;)
        if (filter->open.items[i].slot == slot)
            return i;
    return SIZE_MAX;
}

static bool enter(struct work *work, const struct qut_calls_event *event)
{
    struct traced_filter *filter = work->filter;
    const uint64_t slot = qut_calls_word_slot(event->word);
    forget_inner(work, slot);
    const size_t before = find(filter, slot);
    bool closes_written = before != SIZE_MAX && filter->open.items[before].is_written;
    if (before != SIZE_MAX)
        forget_one(work, before);
    struct traced_open *open = BASE_ADD(&filter->open);
    if (!open)
        return false;
    *open = (struct traced_open){.event = *event, .slot = slot, .id = qut_calls_word_id(event->word)};
    if (!closes_written)
        return true;
    // The reader has the one before as open, and learns of its end by this one: so it comes, and all that are around
    // it.
    while (filter->written < filter->open.count) {
        struct traced_open *next = &filter->open.items[filter->written++];
        next->is_written = true;
        if (!write_event(work, &next->event))
            return false;
    }
    return true;
}

static bool leave(struct work *work, const struct qut_calls_event *event)
{
    struct traced_filter *filter = work->filter;
    const uint64_t slot = qut_calls_word_slot(event->word);
    forget_inner(work, slot);
    const size_t index = find(filter, slot);
    // One that was entered before we looked, or whose enter was lost.
    const bool is_written = index == SIZE_MAX || filter->open.items[index].is_written;
    if (index != SIZE_MAX)
        forget_one(work, index);
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
