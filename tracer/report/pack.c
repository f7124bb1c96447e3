// SPDX-License-Identifier: Apache-2.0
#include "tracer/report/pack.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tracer/export/slices.h"
#include "tracer/report/call_columns.h"
#include "tracer/report/columns.h"

static void columns_of_functions(struct columns *columns, const struct names *names)
{
    struct bytes *function = report_columns_add(columns, "function_name");
    struct bytes *module = report_columns_add(columns, "function_module");
    struct bytes *file = report_columns_add(columns, "function_file");
    for (uint32_t id = 0; id < names_id_count(names); id++) {
        const struct name *name = names_by_id(names, id);
        report_bytes_varint(function, base_interner_add(&columns->strings, name->function));
        report_bytes_varint(module, base_interner_add(&columns->strings, name->module));
        report_bytes_varint(file, base_interner_add(&columns->strings, name->file));
    }
}

static void columns_of_frames(struct columns *columns, const struct report_frames *frames)
{
    struct bytes *parent = report_columns_add(columns, "frame_parent");
    struct bytes *function = report_columns_add(columns, "frame_function");
    struct bytes *class_ = report_columns_add(columns, "frame_class");
    struct bytes *flags = report_columns_add(columns, "frame_flags");
    struct bytes *low = report_columns_add(columns, "frame_low");
    struct bytes *high = report_columns_add(columns, "frame_high");
    for (size_t i = 1; i < frames->count; i++) {
        const struct report_frame *frame = &frames->frames[i];
        report_bytes_varint(parent, i - frame->parent);
        report_bytes_varint(function, frame->function);
        report_bytes_add(class_, &frame->class_, 1);
        report_bytes_add(flags, &frame->flags, 1);
        report_bytes_varint(low, frame->line_low);
        report_bytes_varint(high, frame->line_high - frame->line_low);
    }
}

static void columns_of_threads(struct columns *columns, const struct trace *trace)
{
    static const char *const names[] = {"uid",   "tid",  "process", "name",   "start",  "end",       "samples",
                                        "marks", "gaps", "hold",    "stored", "merged", "throttled", "lost"};
    struct bytes *column[sizeof names / sizeof *names];
    for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
        char name[COLUMN_NAME_BYTES];
        snprintf(name, sizeof name, "thread_%s", names[i]);
        column[i] = report_columns_add(columns, name);
    }
    for (size_t t = 0; t < trace->thread_count; t++) {
        const struct trace_thread *thread = &trace->threads[t];
        uint64_t lost = 0;
        for (unsigned reason = 0; reason < QUT_TRACE_LOST_COUNT; reason++)
            lost += thread->counts.lost[reason];
        const uint64_t values[] = {
            thread->uid,
            thread->tid,
            thread->process,
            base_interner_add(&columns->strings, thread->name),
            report_columns_units_since_start(columns, trace, thread->start_ns),
            // 0: it lived to the trace's end
            thread->end_ns == UINT64_MAX ? 0 : report_columns_units_since_start(columns, trace, thread->end_ns),
            thread->sample_count,
            thread->mark_count,
            thread->gap_count,
            analysis_weights_gap_ns(trace, thread),
            thread->stored,
            thread->merged,
            thread->counts.throttled,
            lost,
        };
        for (size_t i = 0; i < sizeof names / sizeof *names; i++)
            report_bytes_varint(column[i], values[i]);
    }
}

// A trace made by hand has no processes: then it is one, of its pid.
static void columns_of_processes(struct columns *columns, const struct trace *trace)
{
    struct bytes *pid = report_columns_add(columns, "process_pid"),
                 *parent = report_columns_add(columns, "process_parent");
    struct bytes *command = report_columns_add(columns, "process_command"),
                 *start = report_columns_add(columns, "process_start");
    struct bytes *end = report_columns_add(columns, "process_end"),
                 *complete = report_columns_add(columns, "process_complete");
    struct bytes *recording = report_columns_add(columns, "process_recording");
    for (size_t p = 0; p < trace->process_count || p == 0; p++) {
        const struct trace_process only = {.pid = trace->pid,
                                           .command = trace->command ? trace->command : "",
                                           .is_complete = trace->is_complete,
                                           .start_ns = trace->start_ns,
                                           .end_ns = trace->end_ns};
        const struct trace_process *process = trace->process_count ? &trace->processes[p] : &only;
        report_bytes_varint(pid, process->pid);
        report_bytes_varint(parent, process->parent_pid);
        report_bytes_varint(command, base_interner_add(&columns->strings, process->command));
        report_bytes_varint(start, report_columns_units_since_start(columns, trace, process->start_ns));
        report_bytes_varint(end, report_columns_units_since_start(columns, trace, process->end_ns));
        report_bytes_varint(complete, process->is_complete);
        report_bytes_varint(recording, process->recording);
    }
}

// Of the exact sums those that are not 0.
static void columns_of_totals(struct columns *columns, const struct trace *trace)
{
    for (unsigned total = 0; total < QUT_TRACE_TOTAL_COUNT; total++) {
        if (trace->totals[total] == 0)
            continue;
        char name[COLUMN_NAME_BYTES];
        snprintf(name, sizeof name, "ptotal_%u", total);
        struct bytes *of_process = report_columns_add(columns, name);
        snprintf(name, sizeof name, "ttotal_%u", total);
        struct bytes *of_thread = report_columns_add(columns, name);
        for (size_t p = 0; p < trace->process_count; p++)
            report_bytes_varint(of_process, trace->processes[p].totals[total]);
        if (trace->process_count == 0)
            report_bytes_varint(of_process, trace->totals[total]);
        for (size_t t = 0; t < trace->thread_count; t++)
            report_bytes_varint(of_thread, trace->threads[t].totals[total]);
    }
}

// Names of the kinds that occur.
static void columns_of_kinds(struct columns *columns, const struct trace *trace)
{
    struct bytes *number = report_columns_add(columns, "kind_number");
    struct bytes *name = report_columns_add(columns, "kind_name");
    bool occurs[UINT8_MAX + 1] = {false};
    for (size_t i = 0; i < trace->sample_count; i++)
        occurs[(uint8_t)trace->samples[i].kind] = true;
    for (unsigned kind = 0; kind <= UINT8_MAX; kind++) {
        if (!occurs[kind])
            continue;
        report_bytes_varint(number, kind);
        report_bytes_varint(name, base_interner_add(&columns->strings, trace_kind_name(trace, kind)));
    }
}

// Last, when all strings are known.
static void columns_of_strings(struct columns *columns)
{
    struct bytes *lengths = report_columns_add(columns, "strings");
    struct bytes *bytes = report_columns_add(columns, "string_bytes");
    for (size_t i = 0; i < columns->strings.count; i++) {
        size_t length = strlen(columns->strings.texts[i]);
        report_bytes_varint(lengths, length);
        report_bytes_add(bytes, columns->strings.texts[i], length);
    }
}

static void add_text(struct bytes *bytes, const char *text)
{
    report_bytes_add(bytes, text, strlen(text));
}

// Nothing in it comes from the trace but numbers and the names of metrics, which are ours.
static void write_header(struct bytes *header, const struct trace *trace, const struct columns *columns)
{
    char text[160];
    snprintf(text, sizeof text,
             "{\"version\":1,\"timeShift\":%u,\"lengthNs\":%" PRIu64 ",\"hasCpuTime\":%s,\"kernelTickNs\":%" PRIu64 ",",
             columns->time_shift, trace->end_ns - trace->start_ns, trace->has_cpu_time ? "true" : "false",
             analysis_kernel_tick_ns(trace));
    add_text(header, text);
    add_text(header, "\"metrics\":[");
    const char *comma = "";
    for (unsigned metric = 0; metric < QUT_TRACE_METRIC_COUNT; metric++) {
        if (!(trace->metric_mask >> metric & 1))
            continue;
        snprintf(text, sizeof text, "%s{\"index\":%u,\"name\":\"%s\"}", comma, metric, trace_metric_name(metric));
        add_text(header, text);
        comma = ",";
    }
    add_text(header, "],\"totals\":[");
    comma = "";
    for (unsigned total = 0; total < QUT_TRACE_TOTAL_COUNT; total++) {
        if (trace->totals[total] == 0)
            continue;
        snprintf(text, sizeof text, "%s{\"index\":%u,\"name\":\"%s\",\"all\":%" PRIu64 "}", comma, total,
                 trace_total_name(total), trace->totals[total]);
        add_text(header, text);
        comma = ",";
    }
    add_text(header, "],\"sections\":[");
    for (size_t i = 0; i < columns->count; i++) {
        snprintf(text, sizeof text, "%s[\"%s\",%zu]", i ? "," : "", columns->columns[i].name,
                 columns->columns[i].bytes.count);
        add_text(header, text);
    }
    add_text(header, "]}");
}

static int join(struct bytes *bytes, const struct trace *trace, const struct columns *columns)
{
    struct bytes header = {0};
    write_header(&header, trace, columns);
    const uint8_t size[4] = {(uint8_t)header.count, (uint8_t)(header.count >> 8), (uint8_t)(header.count >> 16),
                             (uint8_t)(header.count >> 24)};
    report_bytes_add(bytes, size, sizeof size);
    report_bytes_add(bytes, header.items, header.count);
    bool has_failed = header.has_failed || columns->strings.has_failed;
    report_bytes_free(&header);
    for (size_t i = 0; i < columns->count; i++) {
        report_bytes_add(bytes, columns->columns[i].bytes.items, columns->columns[i].bytes.count);
        has_failed = has_failed || columns->columns[i].bytes.has_failed;
    }
    return has_failed || bytes->has_failed ? -1 : 0;
}

int report_pack(const struct selection *selection, const struct names *names, struct bytes *bytes)
{
    const struct trace *trace = &selection->trace;
    *bytes = (struct bytes){0};
    struct report_frames frames;
    struct columns *columns = calloc(1, sizeof *columns);
    if (!columns)
        return -1;
    struct names_data *data = names_data_open(trace, names);
    if (!data || report_frames_make(&frames, trace, names) != 0) {
        names_data_close(data);
        free(columns);
        return -1;
    }
    columns->time_shift = report_columns_time_shift(trace);
    columns_of_functions(columns, names);
    columns_of_frames(columns, &frames);
    columns_of_processes(columns, trace);
    columns_of_threads(columns, trace);
    columns_of_totals(columns, trace);
    report_columns_of_samples(columns, selection, &frames);
    report_columns_of_metrics(columns, trace);
    report_columns_of_extras(columns, trace, &frames, data);
    report_columns_of_marks(columns, trace);
    report_columns_of_gaps(columns, trace);
    columns_of_kinds(columns, trace);
    const bool has_calls = report_columns_of_calls(columns, selection, names) == 0;
    columns_of_strings(columns);
    int result = names_data_no_memory(data) || !has_calls ? -1 : join(bytes, trace, columns);
    names_data_close(data);
    for (size_t i = 0; i < columns->count; i++)
        report_bytes_free(&columns->columns[i].bytes);
    base_interner_free(&columns->strings);
    free(columns);
    report_frames_free(&frames);
    return result;
}
