// SPDX-License-Identifier: Apache-2.0
// The golden trace in a format, for the programs that read it; or "truth": what is in it, as JSON, one line a record,
// written without any part of the exporters but their sink.
//
//     golden_export FORMAT OUT [--large SAMPLES THREADS DEPTH | --random SEED | --file FILE] [--weight N] [--kind KIND]
//                   [--thread TID|NAME] [--no-names] [--damage] [--no-slices] [--processes N] [--time]
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "tests/support/golden/golden.h"
#include "tests/unit/tracer/export/random_trace.h"
#include "tracer/export/export.h"
#include "tracer/export/sink/sink.h"
#include "tracer/tables/tables.h"

static void key(struct sink *sink, const char *name, uint64_t value)
{
    sink_text(sink, ",\"");
    sink_text(sink, name);
    sink_text(sink, "\":");
    sink_number(sink, value);
}

static void write_stack(const struct trace *trace, const struct names *names, uint32_t node, struct sink *sink)
{
    sink_text(sink, "[");
    for (const char *comma = ""; node; node = trace->nodes[node].parent)
        for (size_t i = 0; i < names_count(names, node); i++, comma = ",") {
            sink_text(sink, comma);
            sink_json_string(sink, names_at(names, node, i)->function);
        }
    sink_text(sink, "]");
}

static void perfetto_write_sample(const struct trace *trace, const struct names *names,
                                  const struct trace_thread *thread, const struct trace_sample *sample,
                                  struct sink *sink)
{
    sink_text(sink, "{\"what\":\"sample\"");
    key(sink, "tid", thread->tid);
    key(sink, "first_ns", sample->first_ns - trace->start_ns);
    key(sink, "last_ns", sample->last_ns - trace->start_ns);
    key(sink, "cpu_ns", trace->has_cpu_time ? sample->cpu_ns : 0);
    key(sink, "count", sample->count);
    sink_text(sink, ",\"kind\":");
    sink_json_string(sink, trace_kind_name(trace, sample->kind));
    for (unsigned i = 0; i < sample->extra_count; i++) {
        char name[32];
        snprintf(name, sizeof name, "extra%u", trace->extras[sample->first_extra + i].key);
        key(sink, name, trace->extras[sample->first_extra + i].value);
    }
    sink_text(sink, ",\"stack\":"); // innermost first
    write_stack(trace, names, sample->node, sink);
    sink_text(sink, "}\n");
}

static void write_truth(const struct trace *trace, const struct names *names, struct sink *sink)
{
    for (size_t t = 0; t < trace->thread_count; t++) {
        const struct trace_thread *thread = &trace->threads[t];
        sink_text(sink, "{\"what\":\"thread\"");
        key(sink, "tid", thread->tid);
        sink_text(sink, ",\"name\":");
        sink_json_string(sink, thread->name);
        sink_text(sink, "}\n");
        for (size_t i = 0; i < thread->sample_count; i++)
            perfetto_write_sample(trace, names, thread, &trace->samples[thread->first_sample + i], sink);
        for (size_t i = 0; i < thread->mark_count; i++) {
            const struct trace_mark *mark = &trace->marks[thread->first_mark + i];
            sink_text(sink, "{\"what\":\"mark\"");
            key(sink, "tid", thread->tid);
            key(sink, "time_ns", mark->time_ns - trace->start_ns);
            key(sink, "kind", mark->kind);
            key(sink, "id", mark->id);
            sink_text(sink, ",\"name\":");
            sink_json_string(sink, mark->name);
            sink_text(sink, "}\n");
        }
        for (size_t i = 0; i < thread->gap_count; i++) {
            const struct trace_gap *gap = &trace->gaps[thread->first_gap + i];
            sink_text(sink, "{\"what\":\"gap\"");
            key(sink, "tid", thread->tid);
            key(sink, "from_ns", gap->from_ns - trace->start_ns);
            key(sink, "to_ns", gap->to_ns - trace->start_ns);
            key(sink, "lost", gap->lost);
            sink_text(sink, "}\n");
        }
    }
}

struct request {
    size_t samples, threads, depth; // samples 0: the golden trace
    struct export_options options;
    struct selection_wanted wanted;
    unsigned seed;    // not 0: a random trace
    const char *file; // the golden trace as it was read
    size_t processes; // 0: it says nothing of them
    bool has_weight, damage, time;
};

static int parse(struct request *request, int argc, char **argv)
{
    for (int i = 3; i < argc; i++) {
        if (strcmp(argv[i], "--large") == 0 && i + 3 < argc) {
            request->samples = strtoul(argv[++i], NULL, 10);
            request->threads = strtoul(argv[++i], NULL, 10);
            request->depth = strtoul(argv[++i], NULL, 10);
        } else if (strcmp(argv[i], "--weight") == 0 && i + 1 < argc) {
            request->options.weight = (unsigned)strtoul(argv[++i], NULL, 10);
            request->has_weight = true;
        } else if (strcmp(argv[i], "--thread") == 0 && i + 1 < argc) {
            request->wanted.thread = argv[++i];
        } else if (strcmp(argv[i], "--kind") == 0 && i + 1 < argc) {
            if (!analysis_kind_named(argv[++i], &request->wanted.kind))
                return -1;
        } else if (strcmp(argv[i], "--no-names") == 0) {
            request->options.no_names = true;
        } else if (strcmp(argv[i], "--damage") == 0) {
            request->damage = true;
        } else if (strcmp(argv[i], "--random") == 0 && i + 1 < argc) {
            request->seed = (unsigned)strtoul(argv[++i], NULL, 10);
        } else if (strcmp(argv[i], "--file") == 0 && i + 1 < argc) {
            request->file = argv[++i];
        } else if (strcmp(argv[i], "--no-slices") == 0) {
            request->options.no_slices = true;
        } else if (strcmp(argv[i], "--processes") == 0 && i + 1 < argc) {
            request->processes = strtoul(argv[++i], NULL, 10);
        } else if (strcmp(argv[i], "--time") == 0) {
            request->time = true;
        } else {
            return -1;
        }
    }
    return argc < 3 || request->options.weight >= EXPORT_WEIGHT_COUNT ? -1 : 0;
}

static uint64_t now_ns(void)
{
    struct timespec now;
    clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &now); // others may run meanwhile
    return (uint64_t)now.tv_sec * 1000000000u + (uint64_t)now.tv_nsec;
}

static int write_format(const struct trace *trace, const struct names *names, const char *format_name,
                        struct request *request, struct sink **sink, struct base_error *error)
{
    if (strcmp(format_name, "truth") == 0) {
        write_truth(trace, names, *sink);
        return 0;
    }
    const struct export_format *format = export_find(format_name);
    if (!format)
        return base_fail(error, BASE_ERR_UNSUPPORTED, "", 0, "no such format");
    struct selection selection;
    if (analysis_selection_make(&selection, trace, &request->wanted, error) != 0)
        return -1;
    if (!request->has_weight)
        request->options.weight = selection.kind == SELECTION_ALL ? format->weight : (unsigned)selection.measure;
    if (format->is_gzip)
        *sink = sink_gzip(*sink);
    int status = format->write(&selection, names, &request->options, *sink, error);
    analysis_selection_free(&selection);
    return status;
}

// As if its threads were of so many processes, one after the other: pids 7001, 7002, ...
static void split(struct trace *trace, size_t count)
{
    enum { MOST = 16 };
    static struct trace_process processes[MOST];
    static char commands[MOST][32];
    trace->processes = processes;
    trace->process_count = count < MOST ? count : MOST;
    for (size_t i = 0; i < trace->process_count; i++) {
        snprintf(commands[i], sizeof commands[i], "/bin/part%zu with arguments", i);
        processes[i] = (struct trace_process){
            .pid = 7001 + (uint32_t)i, .command = commands[i], .start_ns = trace->start_ns, .end_ns = trace->end_ns};
    }
    for (size_t t = 0; t < trace->thread_count; t++)
        trace->threads[t].process = (uint32_t)(t * trace->process_count / trace->thread_count);
}

static int write_folder(const struct trace *trace, const struct names *names, const struct request *request,
                        const char *folder, struct base_error *error)
{
    const struct tables_options options = {.labels = {.host = "golden", .service = "a service"},
                                           .wanted = request->wanted};
    char at[PATH_MAX];
    struct tables *tables = tables_make(trace, names, &options, error);
    int status = tables ? tables_write_folder(tables, folder, at, error) : -1;
    tables_free(tables);
    return status;
}

static int make_trace(const struct request *request, struct trace *trace, struct base_error *error)
{
    if (request->file)
        return trace_read(request->file, trace, error);
    if (request->samples)
        golden_large(trace, request->samples, request->threads, request->depth);
    else if (request->seed)
        random_trace(trace, request->seed);
    else
        golden_trace(trace);
    if (request->damage)
        golden_damage(trace);
    if (request->processes)
        split(trace, request->processes);
    return 0;
}

int main(int argc, char **argv)
{
    struct request request = {.wanted = {.kind = SELECTION_ALL, .to_ns = UINT64_MAX}};
    if (parse(&request, argc, argv) != 0) {
        fputs("usage: golden_export FORMAT OUT [--large SAMPLES THREADS DEPTH | --random SEED | --file FILE] "
              "[--weight N] [--kind KIND] [--thread TID|NAME] [--no-names] [--damage] [--no-slices] [--processes N] "
              "[--time]\n",
              stderr);
        return 2;
    }
    struct trace trace;
    struct base_error error = {0};
    char text[256];
    if (make_trace(&request, &trace, &error) != 0) {
        fprintf(stderr, "%s: %s\n", request.file, base_error_text(&error, text, sizeof text));
        return 1;
    }
    struct names *names = names_of(&trace, &(struct names_options){0}, &error);
    const bool is_folder = strcmp(argv[1], "parquet") == 0;
    struct sink *sink = is_folder ? NULL : sink_file(argv[2], &error);
    uint64_t begin_ns = now_ns();
    int status = is_folder ? write_folder(&trace, names, &request, argv[2], &error)
                 : sink    ? write_format(&trace, names, argv[1], &request, &sink, &error)
                           : -1;
    if (sink && sink_close(sink, status == 0, &error) != 0)
        status = -1;
    if (status != 0)
        fprintf(stderr, "%s: %s: %s\n", argv[1], argv[2], base_error_text(&error, text, sizeof text));
    else if (request.time)
        printf("%s: %.2f M records/s\n", argv[1], (double)trace.sample_count * 1000 / (double)(now_ns() - begin_ns));
    names_free(names);
    if (request.file)
        trace_free(&trace);
    else
        golden_free(&trace);
    return status == 0 ? 0 : 1;
}
