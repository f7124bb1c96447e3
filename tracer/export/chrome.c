// SPDX-License-Identifier: Apache-2.0
// Chrome's trace events as JSON: slices, requests (around the slices of their time), blocked stretches, flows,
// counters. Times are microseconds since the trace's beginning. Losses: otherData, and each gap an event of its thread.
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tracer/export/chrome_calls.h"
#include "tracer/export/clean.h"
#include "tracer/export/export.h"
#include "tracer/export/flows.h"
#include "tracer/export/losses.h"
#include "tracer/export/sink/sink.h"
#include "tracer/export/slices.h"

struct writer {
    const struct trace *trace;
    const struct names *names;
    struct sink *sink;
    struct flows flows;
    const struct trace_thread *thread;
    uint32_t pid;            // of its process
    struct sink *name_texts; // each name as it stands in an event,
    size_t *name_offsets;    // from [id] to [id + 1]
    const char *request;     // that is open; NULL: none is
    uint64_t async_id;       // of the last stretch
    uint64_t slice_ns;       // of the last beginning or end of a slice
    char slice_phase;        // which of the two
    bool has_before;
};

static void put(struct writer *writer, const char *text)
{
    sink_text(writer->sink, text);
}

// {"ph":"B","pid":1,"tid":2,"ts":3.456
static void begin_event(struct writer *writer, const char *phase, uint64_t time_ns)
{
    put(writer, writer->has_before ? ",\n{\"ph\":\"" : "\n{\"ph\":\"");
    writer->has_before = true;
    put(writer, phase);
    put(writer, "\",\"pid\":");
    sink_number(writer->sink, writer->pid);
    put(writer, ",\"tid\":");
    sink_number(writer->sink, writer->thread ? writer->thread->tid : writer->pid);
    put(writer, ",\"ts\":");
    sink_fixed(writer->sink, (int64_t)(time_ns - writer->trace->start_ns), 3);
}

// Some readers sort, and tell beginnings and ends at the same time apart by guesses: a nanosecond lies between them.
static uint64_t slice_time(struct writer *writer, char phase, uint64_t time_ns)
{
    if (time_ns <= writer->slice_ns)
        time_ns = writer->slice_ns + (writer->slice_phase && writer->slice_phase != phase);
    writer->slice_ns = time_ns;
    writer->slice_phase = phase;
    return time_ns;
}

// What stands inside of the slices that are open.
static uint64_t inner_time(const struct writer *writer, uint64_t time_ns)
{
    return time_ns < writer->slice_ns ? writer->slice_ns : time_ns;
}

static void put_name(struct writer *writer, const char *name)
{
    put(writer, ",\"name\":");
    sink_json_string(writer->sink, *name ? name : "[no name]");
}

static bool end_event(struct writer *writer)
{
    put(writer, "}");
    return !sink_failed(writer->sink);
}

static bool make_names(struct writer *writer)
{
    size_t count = names_id_count(writer->names), end;
    writer->name_texts = sink_in_memory();
    writer->name_offsets = calloc(count + 1, sizeof *writer->name_offsets);
    if (!writer->name_texts || !writer->name_offsets)
        return false;
    for (uint32_t id = 0; id < count; id++) {
        const struct name *name = names_by_id(writer->names, id);
        sink_text(writer->name_texts, ",\"name\":");
        sink_json_string(writer->name_texts, *name->function ? name->function : "[no name]");
        if (name->module && *name->module) {
            sink_text(writer->name_texts, ",\"cat\":");
            sink_json_string(writer->name_texts, name->module);
        }
        sink_memory(writer->name_texts, &end);
        writer->name_offsets[id + 1] = end;
    }
    return !sink_failed(writer->name_texts);
}

static bool write_slice(struct writer *writer, const char *phase, uint64_t time_ns, uint32_t node, size_t index)
{
    uint32_t id = names_at(writer->names, node, index)->id;
    size_t size;
    begin_event(writer, phase, slice_time(writer, *phase, time_ns));
    sink_bytes(writer->sink, sink_memory(writer->name_texts, &size) + writer->name_offsets[id],
               writer->name_offsets[id + 1] - writer->name_offsets[id]);
    return end_event(writer);
}

static bool enter(void *context, uint64_t time_ns, uint32_t node, size_t index)
{
    return write_slice(context, "B", time_ns, node, index);
}

// With its name: some readers ask for one in every event.
static bool leave(void *context, uint64_t time_ns, uint32_t node, size_t index)
{
    return write_slice(context, "E", time_ns, node, index);
}

// ---- marks

static void end_request(struct writer *writer, uint64_t time_ns)
{
    if (!writer->request)
        return;
    begin_event(writer, "E", slice_time(writer, 'E', time_ns));
    put_name(writer, writer->request);
    end_event(writer);
    writer->request = NULL;
}

static void put_value(struct writer *writer, const char *key, uint64_t value)
{
    put(writer, ",\"args\":{\"");
    put(writer, key);
    put(writer, "\":");
    sink_number(writer->sink, value);
    put(writer, "}");
}

static void put_signed(struct writer *writer, const char *key, int64_t value)
{
    put(writer, ",\"args\":{\"");
    put(writer, key);
    put(writer, value < 0 ? "\":-" : "\":");
    sink_number(writer->sink, value < 0 ? -(uint64_t)value : (uint64_t)value);
    put(writer, "}");
}

// Between the slices that end there and those that begin there: a request is a slice around them.
static bool write_mark(void *context, const struct trace_mark *mark)
{
    struct writer *writer = context;
    switch (mark->kind) {
    case QUT_TRACE_MARK_BEGIN:
    case QUT_TRACE_MARK_END:
        end_request(writer, mark->time_ns);
        if (mark->kind == QUT_TRACE_MARK_END)
            return true;
        begin_event(writer, "B", slice_time(writer, 'B', mark->time_ns));
        put(writer, ",\"cat\":\"mark\"");
        put_value(writer, "id", mark->id);
        writer->request = mark->name;
        break;
    case QUT_TRACE_MARK_COUNTER:
        begin_event(writer, "C", mark->time_ns);
        put_signed(writer, "value", (int64_t)mark->id);
        break;
    default:
        begin_event(writer, "i", mark->time_ns);
        put(writer, ",\"s\":\"t\",\"cat\":\"mark\"");
        put_value(writer, "id", mark->id);
        break;
    }
    put_name(writer, mark->name);
    return end_event(writer);
}

// ---- stretches that need not lie in each other: asynchronous events

static void write_stretch(struct writer *writer, const char *category, const char *name, uint64_t from_ns,
                          uint64_t to_ns)
{
    writer->async_id++;
    for (unsigned end = 0; end < 2; end++) {
        begin_event(writer, end ? "e" : "b", end ? to_ns : from_ns);
        put(writer, ",\"cat\":\"");
        put(writer, category);
        put(writer, "\",\"id\":");
        sink_number(writer->sink, writer->async_id);
        put_name(writer, name);
        if (!end && writer->thread)
            put_value(writer, "thread", writer->thread->tid);
        end_event(writer);
    }
}

static bool write_gap(void *context, const struct trace_gap *gap)
{
    static const char *const reasons[] = {"lost", "overwritten", "damaged"};
    struct writer *writer = context;
    char name[64];
    snprintf(name, sizeof name, "%" PRIu64 " samples %s", gap->lost, gap->reason < 3 ? reasons[gap->reason] : "lost");
    write_stretch(writer, "gap", name, gap->from_ns, gap->to_ns);
    return !sink_failed(writer->sink);
}

// ---- samples

static void put_extras(struct writer *writer, const struct trace_sample *sample)
{
    put(writer, ",\"args\":{\"hits\":");
    sink_number(writer->sink, sample->count);
    for (unsigned i = 0; i < sample->extra_count; i++) {
        const struct trace_extra *extra = &writer->trace->extras[sample->first_extra + i];
        char key[32];
        const char *name = trace_extra_name(extra->key);
        if (!name) {
            snprintf(key, sizeof key, "extra %u", extra->key);
            name = key;
        }
        put(writer, ",");
        sink_json_string(writer->sink, name);
        put(writer, ":");
        if (extra->key == QUT_TRACE_EXTRA_RESULT)
            sink_fixed(writer->sink, (int64_t)extra->value, 0);
        else
            sink_number(writer->sink, extra->value);
    }
    put(writer, "}");
}

static void write_flow(struct writer *writer, const struct trace_sample *sample)
{
    static const char *const phases[] = {"", "s", "t", "f"};
    uint64_t id;
    enum flow_step step = export_flows_find(&writer->flows, writer->trace, sample, &id);
    if (step == FLOW_NONE)
        return;
    begin_event(writer, phases[step], inner_time(writer, sample->first_ns));
    // A number would lose its lowest bits in readers that have only doubles.
    char text[64];
    snprintf(text, sizeof text, ",\"cat\":\"flow\",\"name\":\"wakes\",\"id\":\"0x%" PRIx64 "\"", id);
    put(writer, text);
    if (step == FLOW_END)
        put(writer, ",\"bp\":\"e\"");
    end_event(writer);
}

static void write_metrics(struct writer *writer, const struct trace_sample *sample)
{
    char thread[CLEAN_THREAD_NAME_BYTES], name[128];
    for (unsigned i = 0; i < QUT_TRACE_METRIC_COUNT; i++) {
        if (!(writer->trace->metric_mask >> i & 1))
            continue;
        snprintf(name, sizeof name, "%s of %s (%u)", trace_metric_name(i),
                 export_clean_thread_name(writer->thread, thread), writer->thread->tid);
        begin_event(writer, "C", sample->last_ns);
        put_name(writer, name);
        put_value(writer, "value", writer->trace->metrics[sample->metrics][i]);
        end_event(writer);
    }
}

// Ticks are what the slices are made of; what happened is shown by itself.
static bool perfetto_write_sample(void *context, const struct trace_sample *sample)
{
    struct writer *writer = context;
    const char *kind = trace_kind_name(writer->trace, sample->kind);
    uint64_t duration_ns;
    if (!trace_sample_is_tick(sample) || sample->extra_count) {
        begin_event(writer, "i", inner_time(writer, sample->first_ns));
        put(writer, ",\"s\":\"t\",\"cat\":\"sample\"");
        put_name(writer, kind);
        put_extras(writer, sample);
        end_event(writer);
        // From and to the instants: Perfetto turns an arrow round that leads to a slice which began before its cause.
        write_flow(writer, sample);
    }
    if (sample->extra_count && trace_extra(writer->trace, sample, QUT_TRACE_EXTRA_DURATION_NS, &duration_ns))
        write_stretch(writer, "blocked", kind,
                      sample->first_ns - (duration_ns < sample->first_ns ? duration_ns : sample->first_ns),
                      sample->first_ns);
    if (sample->is_open) {
        char name[64];
        snprintf(name, sizeof name, "%.40s (did not end)", kind);
        write_stretch(writer, "blocked", name, sample->first_ns,
                      trace_open_until(writer->trace, writer->thread, sample));
    }
    if (sample->metrics != TRACE_NONE)
        write_metrics(writer, sample);
    return !sink_failed(writer->sink);
}

// ----

static void write_metadata(struct writer *writer, const char *what, const char *name)
{
    begin_event(writer, "M", writer->trace->start_ns);
    put_name(writer, what);
    put(writer, ",\"args\":{\"name\":");
    sink_json_string(writer->sink, name);
    put(writer, "}");
    end_event(writer);
}

static void write_processes(struct writer *writer)
{
    const struct trace *trace = writer->trace;
    writer->pid = trace->pid;
    if (!trace->process_count)
        write_metadata(writer, "process_name", trace->command ? trace->command : "");
    for (size_t i = 0; i < trace->process_count; i++) {
        writer->pid = trace->processes[i].pid;
        write_metadata(writer, "process_name", trace->processes[i].command);
    }
}

static void perfetto_write_thread(struct writer *writer, const struct trace_thread *thread)
{
    char name[CLEAN_THREAD_NAME_BYTES];
    writer->thread = thread;
    writer->pid = trace_pid_of(writer->trace, thread);
    writer->request = NULL;
    writer->slice_ns = 0;
    writer->slice_phase = '\0';
    write_metadata(writer, "thread_name", export_clean_thread_name(thread, name));
    const struct slice_options options = {.gap_ns = analysis_weights_gap_ns(writer->trace, thread)};
    const struct slice_events events = {.context = writer,
                                        .enter = enter,
                                        .leave = leave,
                                        .sample = perfetto_write_sample,
                                        .mark = write_mark,
                                        .gap = write_gap};
    if (!export_slices_of_thread(writer->trace, writer->names, thread, &options, &events))
        sink_no_memory(writer->sink);
    end_request(writer, thread->end_ns == UINT64_MAX ? writer->trace->end_ns : thread->end_ns);
    writer->thread = NULL;
}

static void write_loss(void *context, const char *text)
{
    struct writer *writer = context;
    put(writer, writer->has_before ? ",\n" : "\n");
    writer->has_before = true;
    sink_json_string(writer->sink, text);
}

// Last: a file that is cut off is not JSON.
static void write_other_data(struct writer *writer)
{
    put(writer, "\n],\"displayTimeUnit\":\"ns\",\"otherData\":{\"exporter\":\"qut " QUT_VERSION "\",\"hits\":");
    sink_number(writer->sink, writer->trace->counts.hits);
    put(writer, ",\"start_ns\":");
    sink_number(writer->sink, writer->trace->start_ns);
    put(writer, ",\"losses\":[");
    writer->has_before = false;
    export_losses_say(writer->trace, write_loss, writer);
    put(writer, "]}}\n");
}

static void end_writer(struct writer *writer)
{
    export_flows_free(&writer->flows);
    free(writer->name_offsets);
    if (writer->name_texts)
        sink_close(writer->name_texts, false, NULL);
}

static int write_chrome(const struct selection *selection, const struct names *names,
                        const struct export_options *options, struct sink *sink, struct base_error *error)
{
    const struct trace *trace = &selection->trace;
    struct writer writer = {.trace = trace, .names = names, .sink = sink};
    if (export_flows_make(&writer.flows, trace) != 0 || !make_names(&writer)) {
        end_writer(&writer);
        return base_fail(error, BASE_ERR_NO_MEMORY, "", 0, "names");
    }
    put(&writer, "{\"traceEvents\":[");
    write_processes(&writer);
    for (size_t i = 0; i < trace->thread_count && !sink_failed(sink); i++) {
        perfetto_write_thread(&writer, &trace->threads[i]);
        if (options->progress)
            options->progress(options->progress_context, i + 1, trace->thread_count);
    }
    const bool has_calls = export_chrome_calls(selection, names, sink, &writer.has_before);
    write_other_data(&writer);
    end_writer(&writer);
    return has_calls ? 0 : base_fail(error, BASE_ERR_NO_MEMORY, "", 0, "calls");
}

const struct export_format export_chrome = {
    .name = "chrome",
    .extension = ".trace.json",
    .what = "Chrome's trace events, JSON (Perfetto, chrome://tracing, Firefox Profiler, speedscope)",
    .write = write_chrome,
    .weight = EXPORT_WEIGHT_TIME,
    .is_timeline = true,
};
