// SPDX-License-Identifier: Apache-2.0
#include <stdlib.h>

#include "tracer/analysis/weights.h"

// ---- threads by their tids: a tid may have been given to several, one after the other

struct tid {
    uint32_t process, tid;
    uint64_t start_ns;
    uint32_t thread;
};

static int compare_tids(const void *a, const void *b)
{
    const struct tid *left = a, *right = b;
    if (left->process != right->process)
        return left->process < right->process ? -1 : 1;
    if (left->tid != right->tid)
        return left->tid < right->tid ? -1 : 1;
    return (left->start_ns > right->start_ns) - (left->start_ns < right->start_ns);
}

// ---- what ends waits: samples that carry a flow and have no duration

struct cause {
    uint64_t flow, time_ns;
    size_t sample;
    uint32_t thread;
};

static int compare_causes(const void *a, const void *b)
{
    const struct cause *left = a, *right = b;
    if (left->flow != right->flow)
        return left->flow < right->flow ? -1 : 1;
    return (left->time_ns > right->time_ns) - (left->time_ns < right->time_ns);
}

struct maker {
    const struct trace *trace;
    struct tid *tids;
    BASE_VECTOR(struct cause) causes;
    struct intervals *to;
    uint32_t thread; // whose samples are looked at
    struct covered covered;
};

// The thread that had the tid at that time: the last one that began before.
static uint32_t find_thread(const struct maker *maker, uint64_t tid, uint64_t time_ns)
{
    const struct tid wanted = {
        .process = maker->trace->threads[maker->thread].process, .tid = (uint32_t)tid, .start_ns = time_ns};
    size_t low = 0, high = maker->trace->thread_count;
    while (low < high) {
        size_t middle = low + (high - low) / 2;
        if (compare_tids(&maker->tids[middle], &wanted) <= 0)
            low = middle + 1;
        else
            high = middle;
    }
    // Its start may be known a little late: the first of that tid does, too.
    const struct tid *found = low > 0 ? &maker->tids[low - 1] : NULL;
    if (found && found->process == wanted.process && found->tid == wanted.tid)
        return found->thread;
    found = low < maker->trace->thread_count ? &maker->tids[low] : NULL;
    return found && found->process == wanted.process && found->tid == wanted.tid ? found->thread : TRACE_NONE;
}

// The last cause with that flow that is not later than the end of the wait; else its first one (clocks of two threads
// are read one after the other).
static const struct cause *find_cause(const struct maker *maker, uint64_t flow, uint64_t time_ns)
{
    const struct cause wanted = {.flow = flow, .time_ns = time_ns};
    size_t low = 0, high = maker->causes.count;
    while (low < high) {
        size_t middle = low + (high - low) / 2;
        if (compare_causes(&maker->causes.items[middle], &wanted) <= 0)
            low = middle + 1;
        else
            high = middle;
    }
    if (low > 0 && maker->causes.items[low - 1].flow == flow)
        return &maker->causes.items[low - 1];
    return low < maker->causes.count && maker->causes.items[low].flow == flow ? &maker->causes.items[low] : NULL;
}

static void set_extras(const struct maker *maker, struct interval *interval, const struct trace_sample *sample)
{
    const struct trace *trace = maker->trace;
    uint64_t value;
    trace_extra(trace, sample, QUT_TRACE_EXTRA_LOCK, &interval->lock);
    if (trace_extra(trace, sample, QUT_TRACE_EXTRA_BEGIN_NODE, &value) && value < trace->node_count)
        interval->begin_node = (uint32_t)value;
    if (trace_extra(trace, sample, QUT_TRACE_EXTRA_OWNER_TID, &value)) {
        interval->owner_tid = (uint32_t)value;
        interval->owner = find_thread(maker, value, interval->from_ns);
    }
    if (trace_extra(trace, sample, QUT_TRACE_EXTRA_WAKER_TID, &value)) {
        interval->waker_tid = (uint32_t)value;
        interval->waker = find_thread(maker, value, interval->to_ns);
    }
    if (!trace_extra(trace, sample, QUT_TRACE_EXTRA_FLOW, &value))
        return;
    const struct cause *cause = find_cause(maker, value, interval->to_ns);
    if (!cause)
        return;
    interval->release = cause->sample;
    if (interval->waker == TRACE_NONE) {
        interval->waker = cause->thread;
        interval->waker_tid = trace->threads[cause->thread].tid;
    }
}

static bool add(struct maker *maker, size_t index, uint64_t begin_ns, uint64_t end_ns)
{
    const struct trace_sample *sample = &maker->trace->samples[index];
    struct interval *interval = BASE_ADD(maker->to);
    if (!interval)
        return false;
    *interval = (struct interval){.from_ns = begin_ns,
                                  .to_ns = end_ns,
                                  .thread = maker->thread,
                                  .node = sample->node,
                                  .begin_node = sample->is_open ? sample->node : TRACE_NONE,
                                  .owner = TRACE_NONE,
                                  .waker = TRACE_NONE,
                                  .kind = sample->kind,
                                  .is_open = sample->is_open,
                                  .sample = index,
                                  .release = SIZE_MAX};
    if (analysis_is_blocking(sample))
        interval->blocked_ns = analysis_covered_add(&maker->covered, begin_ns, end_ns);
    set_extras(maker, interval, sample);
    return true;
}

static bool add_thread(struct maker *maker)
{
    const struct trace *trace = maker->trace;
    const struct trace_thread *thread = &trace->threads[maker->thread];
    maker->covered = (struct covered){0};
    for (size_t i = thread->first_sample; i < thread->first_sample + thread->sample_count; i++) {
        const struct trace_sample *sample = &trace->samples[i];
        uint64_t begin_ns;
        if (sample->is_open) {
            if (!add(maker, i, sample->first_ns, trace_open_until(trace, thread, sample)))
                return false;
        } else if (analysis_interval_begin(trace, sample, &begin_ns) && !add(maker, i, begin_ns, sample->first_ns)) {
            return false;
        }
    }
    return true;
}

static bool prepare(struct maker *maker)
{
    const struct trace *trace = maker->trace;
    maker->tids = calloc(trace->thread_count + 1, sizeof *maker->tids);
    if (!maker->tids)
        return false;
    for (uint32_t t = 0; t < trace->thread_count; t++) {
        const struct trace_thread *thread = &trace->threads[t];
        maker->tids[t] = (struct tid){thread->process, thread->tid, thread->start_ns, t};
        for (size_t i = thread->first_sample; i < thread->first_sample + thread->sample_count; i++) {
            const struct trace_sample *sample = &trace->samples[i];
            uint64_t flow, duration_ns;
            if (!sample->extra_count || !trace_extra(trace, sample, QUT_TRACE_EXTRA_FLOW, &flow) ||
                trace_extra(trace, sample, QUT_TRACE_EXTRA_DURATION_NS, &duration_ns))
                continue;
            struct cause *cause = BASE_ADD(&maker->causes);
            if (!cause)
                return false;
            *cause = (struct cause){flow, sample->first_ns, i, t};
        }
    }
    qsort(maker->tids, trace->thread_count, sizeof *maker->tids, compare_tids);
    if (maker->causes.count)
        qsort(maker->causes.items, maker->causes.count, sizeof *maker->causes.items, compare_causes);
    return true;
}

int analysis_intervals_make(struct intervals *to, const struct trace *trace)
{
    struct maker maker = {.trace = trace, .to = to};
    *to = (struct intervals){0};
    bool made = prepare(&maker);
    for (; made && maker.thread < trace->thread_count; maker.thread++)
        made = add_thread(&maker);
    free(maker.tids);
    base_vector_free(&maker.causes.vector);
    if (made)
        return 0;
    analysis_intervals_free(to);
    return -1;
}

void analysis_intervals_free(struct intervals *intervals)
{
    base_vector_free(&intervals->vector);
}
