// SPDX-License-Identifier: Apache-2.0
// Exact calls of traces that are put together. Their events stay as they are; what they tell of is the whole's.
#include "tracer/call_events/events.h"
#include "tracer/trace/together/inside.h"

// A part without a clock counts a tick as a nanosecond.
static bool shift_calls(struct call_events *calls, uint64_t by_ns)
{
    together_shift(&calls->told.begin_ns, by_ns);
    together_shift(&calls->told.end_ns, by_ns);
    for (size_t i = 0; i < calls->threads.count; i++) {
        together_shift(&calls->threads.items[i].start_ns, by_ns);
        together_shift(&calls->threads.items[i].end_ns, by_ns);
    }
    for (size_t i = 0; i < calls->clocks.count; i++)
        calls->clocks.items[i].ns += by_ns;
    if (calls->clocks.count)
        return true;
    struct qut_trace_file_call_clock *only = BASE_ADD(&calls->clocks);
    if (only)
        *only = (struct qut_trace_file_call_clock){.ns = by_ns};
    return only;
}

bool together_calls_add(struct merger *merger, struct trace *recording, const struct together_calls *added)
{
    if (!recording->calls_count)
        return true;
    if (!trace_vector_reserve(&merger->calls, recording->calls_count))
        return false;
    for (size_t i = 0; i < recording->calls_count; i++) {
        struct call_events *calls = recording->calls[i];
        if (!shift_calls(calls, added->by_ns))
            return false;
        calls->recording = added->index;
        for (size_t j = 0; j < calls->functions.count; j++)
            calls->functions.items[j].node = merger->node_map.items[calls->functions.items[j].node];
        for (size_t j = 0; j < calls->threads.count; j++)
            if (calls->threads.items[j].thread != CALL_EVENTS_NONE)
                calls->threads.items[j].thread += (uint32_t)added->first_thread;
    }
    for (size_t i = 0; i < recording->calls_count; i++)
        *(struct call_events **)trace_vector_add(&merger->calls) = recording->calls[i];
    recording->calls_count = 0;
    return true;
}

void together_calls_end(struct merger *merger, struct trace *trace)
{
    trace->calls = merger->calls.items;
    trace->calls_count = merger->calls.count;
    merger->calls.count = 0;
    for (size_t i = 0; i < trace->calls_count; i++)
        for (size_t j = 0; j < trace->calls[i]->threads.count; j++) {
            uint32_t *thread = &trace->calls[i]->threads.items[j].thread;
            if (*thread != CALL_EVENTS_NONE)
                *thread = merger->thread_map[*thread];
        }
}
