// SPDX-License-Identifier: Apache-2.0
#include "tracer/export/call_lanes.h"

#include <stdio.h>

#include "tracer/analysis/call_part.h"

struct writer {
    const struct call_events *calls;
    const struct names *names;
    const struct call_lane_events *events;
    uint64_t last_ns;
    bool was_begin;
};

static const struct name *name_of(const struct writer *writer, const struct call_times_slice *slice)
{
    const uint32_t node = writer->calls->functions.items[slice->function].node;
    return names_at(writer->names, node, names_count(writer->names, node) - 1);
}

// Some readers sort, and tell beginnings and ends at the same time apart by guesses: a nanosecond lies between them.
static uint64_t time_of(struct writer *writer, uint64_t time_ns, bool is_begin)
{
    if (time_ns <= writer->last_ns)
        time_ns = writer->last_ns + (writer->was_begin != is_begin);
    writer->last_ns = time_ns;
    writer->was_begin = is_begin;
    return time_ns;
}

static bool begin(void *context, const struct call_times_slice *slice)
{
    struct writer *writer = context;
    const uint64_t ns = time_of(writer, slice->begin_ns, true);
    return writer->events->begin(writer->events->context, ns, name_of(writer, slice));
}

static bool end(void *context, const struct call_times_slice *slice)
{
    struct writer *writer = context;
    const uint64_t ns = time_of(writer, slice->end_ns, false);
    const char *how = slice->how == CALL_TIMES_RETURNED ? NULL : call_times_how_name((enum call_times_how)slice->how);
    return writer->events->end(writer->events->context, ns, name_of(writer, slice), how);
}

static bool write_lane(struct writer *writer, const struct call_times_lanes *lanes, const struct call_times_lane *lane,
                       uint32_t number)
{
    const struct call_events_thread *thread = &writer->calls->threads.items[lane->thread];
    char name[CALL_LANE_NAME_BYTES], of_thread[CALL_LANE_NAME_BYTES / 2];
    if (*thread->name)
        snprintf(of_thread, sizeof of_thread, "%s", thread->name);
    else
        snprintf(of_thread, sizeof of_thread, "thread %u", thread->tid);
    if (lane->number)
        snprintf(name, sizeof name, "%s (calls, stack %u)", of_thread, lane->number + 1);
    else
        snprintf(name, sizeof name, "%s (calls)", of_thread);
    const struct call_times_slice_events events = {.begin = begin, .end = end, .context = writer};
    bool no_memory = false;
    writer->last_ns = 0;
    return writer->events->lane(writer->events->context, writer->calls, thread, number, name) &&
           call_times_lane_replay(lanes, lane, &events, &no_memory);
}

bool export_call_lanes(const struct selection *selection, const struct names *names,
                       const struct call_lane_events *events)
{
    const struct trace *trace = selection->whole;
    uint32_t number = 0;
    bool is_good = true;
    for (size_t i = 0; i < trace->calls_count && is_good; i++) {
        struct analysis_call_part part;
        struct call_times_lanes lanes = {0};
        struct base_error error = {0};
        struct writer writer = {.calls = trace->calls[i], .names = names, .events = events};
        is_good = analysis_call_part_make(&part, selection, writer.calls);
        if (!is_good)
            break;
        is_good = call_times_lanes_make(&lanes, writer.calls, &part.part, SIZE_MAX, &error) == 0;
        for (size_t j = 0; j < lanes.lanes.count && is_good; j++)
            is_good = write_lane(&writer, &lanes, &lanes.lanes.items[j], number++);
        call_times_lanes_free(&lanes);
        analysis_call_part_free(&part);
    }
    return is_good;
}
