// SPDX-License-Identifier: Apache-2.0
// What a page must say about a trace made by hand, found out without the code that makes the page: samples, bytes and
// so on by function from the nodes, slices from tracer/export/slices.h. JSON on standard output.
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tests/support/golden/golden.h"
#include "tests/unit/tracer/report/traces.h"
#include "tracer/analysis/analysis.h"
#include "tracer/export/sink/sink.h"
#include "tracer/export/slices.h"

struct printer {
    struct sink *sink;
    const struct trace *trace;
    const struct names *names;
    size_t thread;
    const char *comma;
};

static void print_event(struct printer *printer, const char *what, uint64_t time_ns, uint32_t node, size_t index)
{
    sink_text(printer->sink, printer->comma);
    sink_text(printer->sink, "[");
    sink_number(printer->sink, printer->thread);
    sink_text(printer->sink, what);
    sink_number(printer->sink, time_ns - printer->trace->start_ns);
    sink_text(printer->sink, ",");
    sink_number(printer->sink, names_at(printer->names, node, index)->id);
    sink_text(printer->sink, "]\n");
    printer->comma = ",";
}

static bool enter(void *context, uint64_t time_ns, uint32_t node, size_t index)
{
    print_event(context, ",1,", time_ns, node, index);
    return true;
}

static bool leave(void *context, uint64_t time_ns, uint32_t node, size_t index)
{
    print_event(context, ",0,", time_ns, node, index);
    return true;
}

static void print_slices(struct printer *printer)
{
    const struct slice_events events = {.context = printer, .enter = enter, .leave = leave};
    printer->comma = "";
    for (printer->thread = 0; printer->thread < printer->trace->thread_count; printer->thread++) {
        const struct trace_thread *thread = &printer->trace->threads[printer->thread];
        const struct slice_options options = {.gap_ns = analysis_weights_gap_ns(printer->trace, thread)};
        export_slices_of_thread(printer->trace, printer->names, thread, &options, &events);
    }
}

// Of each function: samples in which it is the innermost, and in which it is at all.
static void print_functions(const struct printer *printer)
{
    const struct trace *trace = printer->trace;
    size_t count = names_id_count(printer->names);
    uint64_t *self = calloc(count + 1, sizeof *self), *total = calloc(count + 1, sizeof *total);
    size_t *seen = calloc(count + 1, sizeof *seen);
    if (!self || !total || !seen)
        abort();
    for (size_t i = 0; i < trace->sample_count; i++) {
        uint32_t node = trace->samples[i].node;
        if (node)
            self[names_at(printer->names, node, 0)->id] += trace->samples[i].count;
        for (; node; node = trace->nodes[node].parent) {
            for (size_t f = 0; f < names_count(printer->names, node); f++) {
                uint32_t id = names_at(printer->names, node, f)->id;
                if (seen[id] != i + 1)
                    total[id] += trace->samples[i].count;
                seen[id] = i + 1;
            }
        }
    }
    const char *comma = "";
    for (uint32_t id = 0; id < count; id++) {
        if (total[id] == 0)
            continue;
        sink_text(printer->sink, comma);
        sink_text(printer->sink, "[");
        sink_json_string(printer->sink, names_by_id(printer->names, id)->function);
        sink_text(printer->sink, ",");
        sink_number(printer->sink, self[id]);
        sink_text(printer->sink, ",");
        sink_number(printer->sink, total[id]);
        sink_text(printer->sink, "]\n");
        comma = ",";
    }
    free(self);
    free(total);
    free(seen);
}

// What `qut info --blocked` sums up, of each thread: [thread, ns, waits, of these without an end].
static void print_blocked(const struct printer *printer)
{
    struct intervals intervals;
    struct blocked_list list;
    if (analysis_intervals_make(&intervals, printer->trace) != 0 ||
        analysis_blocked_make(&list, printer->trace, &intervals) != 0)
        abort();
    for (size_t t = 0; t < printer->trace->thread_count; t++) {
        uint64_t total_ns = 0, count = 0, open = 0;
        for (size_t i = 0; i < list.count; i++) {
            const struct blocked *blocked = &list.items[i];
            total_ns += blocked->thread == t ? blocked->total_ns : 0;
            count += blocked->thread == t ? blocked->count : 0;
            open += blocked->thread == t ? blocked->open : 0;
        }
        sink_text(printer->sink, t ? ",[" : "[");
        const uint64_t values[] = {t, total_ns, count, open};
        for (size_t i = 0; i < sizeof values / sizeof *values; i++) {
            sink_text(printer->sink, i ? "," : "");
            sink_number(printer->sink, values[i]);
        }
        sink_text(printer->sink, "]\n");
    }
    analysis_blocked_free(&list);
    analysis_intervals_free(&intervals);
}

// Of each function and line that samples end in: [function, line, samples].
static void print_lines(const struct printer *printer)
{
    const struct trace *trace = printer->trace;
    const char *comma = "";
    for (size_t i = 0; i < trace->sample_count; i++) {
        const struct name *name = trace->samples[i].node ? names_at(printer->names, trace->samples[i].node, 0) : NULL;
        if (!name || name->line == 0)
            continue;
        sink_text(printer->sink, comma);
        sink_text(printer->sink, "[");
        sink_json_string(printer->sink, name->function);
        sink_text(printer->sink, ",");
        sink_number(printer->sink, name->line);
        sink_text(printer->sink, ",");
        sink_number(printer->sink, trace->samples[i].count);
        sink_text(printer->sink, "]\n");
        comma = ",";
    }
}

int main(int argc, char **argv)
{
    struct trace trace;
    if (argc != 2 || make_trace(argv[1], &trace) != 0) {
        fprintf(stderr, "usage: expected WHAT\n");
        return 2;
    }
    struct base_error error = {0};
    struct names_options options = {0};
    struct names *names = names_of(&trace, &options, &error);
    struct sink *sink = sink_file("-", &error);
    if (!names || !sink)
        return 1;
    struct printer printer = {.sink = sink, .trace = &trace, .names = names};
    sink_text(sink, "{\"samples\":");
    sink_number(sink, trace.present_samples);
    sink_text(sink, ",\"records\":");
    sink_number(sink, trace.sample_count);
    sink_text(sink, ",\"functions\":[");
    print_functions(&printer);
    sink_text(sink, "],\"events\":[");
    print_slices(&printer);
    sink_text(sink, "],\"blocked\":[");
    print_blocked(&printer);
    sink_text(sink, "],\"lines\":[");
    print_lines(&printer);
    sink_text(sink, "]}\n");
    int status = sink_close(sink, true, &error);
    names_free(names);
    golden_free(&trace);
    return status == 0 ? 0 : 1;
}
