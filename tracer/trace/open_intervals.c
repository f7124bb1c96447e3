// SPDX-License-Identifier: Apache-2.0
// Which beginnings of intervals have no end. An interval's end carries its duration, so it says when it began; and the
// stack at its beginning, where that was stored. Intervals of a thread lie in each other, so the beginnings that wait
// for their end are a stack: whatever stands above the one that ends was left without an end (a jump out of it, an end
// that was lost).
#include <stdlib.h>

#include "tracer/trace/trace_data.h"

// Times are rounded to the trace's unit, and an end's clock may be read a little after its duration was.
enum { TOLERANCE_NS = 100000, NESTED_MAX = 64 };

struct waiting {
    size_t indices[NESTED_MAX]; // of samples, outermost first
    size_t count;
};

static void put(struct trace *trace, struct waiting *waiting, size_t index)
{
    trace->samples[index].is_open = 1; // until its end is met
    if (waiting->count == NESTED_MAX) {
        for (size_t i = 1; i < NESTED_MAX; i++)
            waiting->indices[i - 1] = waiting->indices[i];
        waiting->count--;
    }
    waiting->indices[waiting->count++] = index;
}

static bool is_beginning_of(const struct trace *trace, const struct trace_sample *begin, const struct trace_sample *end,
                            uint64_t begin_ns)
{
    uint64_t distance = begin->first_ns > begin_ns ? begin->first_ns - begin_ns : begin_ns - begin->first_ns;
    uint64_t node = begin->node;
    trace_extra(trace, end, QUT_TRACE_EXTRA_BEGIN_NODE, &node);
    return begin->kind == end->kind && distance <= TOLERANCE_NS && node == begin->node;
}

static void take(struct trace *trace, struct waiting *waiting, const struct trace_sample *end, uint64_t duration_ns)
{
    uint64_t begin_ns = end->first_ns - (duration_ns < end->first_ns ? duration_ns : end->first_ns);
    for (size_t i = waiting->count; i-- > 0;) {
        struct trace_sample *begin = &trace->samples[waiting->indices[i]];
        if (!is_beginning_of(trace, begin, end, begin_ns))
            continue;
        begin->is_open = 0;
        waiting->count = i;
        return;
    }
}

bool trace_find_open(struct trace *trace)
{
    struct waiting *waiting = malloc(sizeof *waiting);
    if (!waiting)
        return false;
    for (size_t t = 0; t < trace->thread_count; t++) {
        const struct trace_thread *thread = &trace->threads[t];
        waiting->count = 0;
        for (size_t i = thread->first_sample; i < thread->first_sample + thread->sample_count; i++) {
            struct trace_sample *sample = &trace->samples[i];
            uint64_t duration_ns;
            sample->is_open = 0;
            if (sample->flags & QUT_TRACE_SAMPLE_BEGINS)
                put(trace, waiting, i);
            else if (waiting->count && sample->extra_count &&
                     trace_extra(trace, sample, QUT_TRACE_EXTRA_DURATION_NS, &duration_ns))
                take(trace, waiting, sample, duration_ns);
        }
    }
    free(waiting);
    return true;
}

uint64_t trace_open_until(const struct trace *trace, const struct trace_thread *thread,
                          const struct trace_sample *sample)
{
    size_t next = (size_t)(sample - trace->samples) + 1;
    uint64_t until_ns = thread->end_ns, duration_ns = 0;
    if (next < thread->first_sample + thread->sample_count) {
        const struct trace_sample *after = &trace->samples[next];
        if (after->extra_count)
            trace_extra(trace, after, QUT_TRACE_EXTRA_DURATION_NS, &duration_ns);
        until_ns = after->first_ns - (duration_ns < after->first_ns ? duration_ns : after->first_ns);
    } else if (until_ns == UINT64_MAX) {
        until_ns = thread->process < trace->process_count ? trace->processes[thread->process].end_ns : trace->end_ns;
    }
    return until_ns > sample->last_ns ? until_ns : sample->last_ns;
}
