// SPDX-License-Identifier: Apache-2.0
#include "tracer/report/call_columns.h"

#include "tracer/analysis/call_part.h"
#include "tracer/call_times/lanes.h"

enum { CALLS_MOST = 250000 }; // in a page; of more, the longest ones

struct writer {
    const struct selection *selection;
    const struct call_events *calls;
    const struct names *names;
    struct bytes *lane_thread, *lane_count, *begin, *length, *function, *depth, *how;
    uint64_t hidden;
};

// Its index among the threads that are shown; TRACE_NONE: it is not there.
static uint32_t shown_thread(const struct writer *writer, uint32_t thread)
{
    const struct trace *trace = &writer->selection->trace;
    const uint32_t whole = writer->calls->threads.items[thread].thread;
    for (uint32_t i = 0; whole != CALL_EVENTS_NONE && i < trace->thread_count; i++)
        if (trace->threads[i].uid == writer->selection->whole->threads[whole].uid)
            return i;
    return TRACE_NONE;
}

static void write_lane(struct writer *writer, const struct call_times_lanes *lanes, const struct call_times_lane *lane)
{
    const uint64_t start_ns = writer->selection->whole->start_ns;
    const uint32_t thread = shown_thread(writer, lane->thread);
    uint64_t last_ns = start_ns;
    if (thread == TRACE_NONE) {
        writer->hidden += lane->count;
        return;
    }
    report_bytes_varint(writer->lane_thread, thread);
    report_bytes_varint(writer->lane_count, lane->count);
    for (size_t i = lane->first; i < lane->first + lane->count; i++) {
        const struct call_times_slice *slice = &lanes->slices.items[i];
        const uint32_t node = writer->calls->functions.items[slice->function].node;
        const struct name *name = names_at(writer->names, node, names_count(writer->names, node) - 1);
        const uint64_t begin_ns = slice->begin_ns > last_ns ? slice->begin_ns : last_ns;
        report_bytes_varint(writer->begin, begin_ns - last_ns);
        report_bytes_varint(writer->length, slice->end_ns > begin_ns ? slice->end_ns - begin_ns : 0);
        report_bytes_varint(writer->function, name->id);
        report_bytes_varint(writer->depth, slice->depth);
        report_bytes_varint(writer->how, slice->how);
        last_ns = begin_ns;
    }
}

// Sums of all calls of a process, those included that have no room.
struct sum_columns {
    struct bytes *function, *counted, *how, *times, *histogram, *recorded;
};

static void write_histogram(struct bytes *to, const struct call_times_function *function)
{
    unsigned buckets = 0;
    for (unsigned i = 0; i < CALL_TIMES_BUCKETS; i++)
        buckets += function->histogram[i] > 0;
    report_bytes_varint(to, buckets);
    for (unsigned i = 0; i < CALL_TIMES_BUCKETS; i++)
        if (function->histogram[i]) {
            report_bytes_varint(to, i);
            report_bytes_varint(to, function->histogram[i]);
        }
}

static int write_sums(const struct sum_columns *to, const struct call_events *calls, const struct names *names,
                      const struct call_times_part *part, struct base_error *error)
{
    struct call_times_sums sums;
    if (call_times_sum(&sums, calls, part, error) != 0)
        return -1;
    for (size_t i = 0; i < sums.function_count; i++) {
        const struct call_times_function *function = &sums.functions[i];
        const struct call_events_function *traced = &calls->functions.items[i];
        if (!function->calls && !traced->counted)
            continue;
        const uint64_t times[] = {function->total_ns, function->self_ns, function->min_ns, function->max_ns};
        report_bytes_varint(to->function, names_at(names, traced->node, names_count(names, traced->node) - 1)->id);
        report_bytes_varint(to->counted, traced->counted);
        for (unsigned how = 0; how < CALL_TIMES_HOW_COUNT; how++)
            report_bytes_varint(to->how, function->how[how]);
        for (size_t k = 0; k < sizeof times / sizeof *times; k++)
            report_bytes_varint(to->times, times[k]);
        write_histogram(to->histogram, function);
        report_bytes_varint(to->recorded, call_events_one_of(traced) ? 1 + traced->enters : 0);
    }
    call_times_sums_free(&sums);
    return 0;
}

int report_columns_of_calls(struct columns *columns, const struct selection *selection, const struct names *names)
{
    const struct trace *trace = selection->whole;
    struct writer writer = {.selection = selection,
                            .names = names,
                            .lane_thread = report_columns_add(columns, "call_lane_thread"),
                            .lane_count = report_columns_add(columns, "call_lane_count"),
                            .begin = report_columns_add(columns, "call_begin"),
                            .length = report_columns_add(columns, "call_length"),
                            .function = report_columns_add(columns, "call_function"),
                            .depth = report_columns_add(columns, "call_depth"),
                            .how = report_columns_add(columns, "call_how")};
    struct bytes *hidden = report_columns_add(columns, "call_hidden");
    const struct sum_columns sums = {.function = report_columns_add(columns, "call_sum_function"),
                                     .counted = report_columns_add(columns, "call_sum_counted"),
                                     .how = report_columns_add(columns, "call_sum_how"),
                                     .times = report_columns_add(columns, "call_sum_times"),
                                     .histogram = report_columns_add(columns, "call_sum_histogram"),
                                     .recorded = report_columns_add(columns, "call_sum_recorded")};
    int status = 0;
    for (size_t i = 0; i < trace->calls_count && status == 0; i++) {
        struct analysis_call_part part;
        struct call_times_lanes lanes = {0};
        struct base_error error = {0};
        writer.calls = trace->calls[i];
        if (!analysis_call_part_make(&part, selection, writer.calls))
            return -1;
        status = call_times_lanes_make(&lanes, writer.calls, &part.part, CALLS_MOST / trace->calls_count + 1, &error);
        for (size_t j = 0; j < lanes.lanes.count; j++)
            write_lane(&writer, &lanes, &lanes.lanes.items[j]);
        writer.hidden += lanes.hidden;
        call_times_lanes_free(&lanes);
        if (status == 0)
            status = write_sums(&sums, writer.calls, names, &part.part, &error);
        analysis_call_part_free(&part);
    }
    report_bytes_varint(hidden, writer.hidden);
    return status;
}
