// SPDX-License-Identifier: Apache-2.0
// speedscope's own JSON, a profile for each thread. Time: when functions were entered and left, so that its time order
// shows what happened. Anything else: samples with their weights. https://www.speedscope.app/file-format-schema.json
#include <stdio.h>
#include <string.h>

#include "tracer/export/clean.h"
#include "tracer/export/losses.h"
#include "tracer/export/slices.h"
#include "tracer/export/stack_text.h"
#include "tracer/export/weight_words.h"

struct writer {
    const struct selection *selection;
    const struct trace *trace;
    const struct names *names;
    const struct export_options *options;
    struct sink *sink;
    struct stack_text stacks;
    uint64_t last_ns;
    bool has_before; // a comma is needed
};

static void put(struct writer *writer, const char *text)
{
    sink_text(writer->sink, text);
}

static void put_comma(struct writer *writer)
{
    if (writer->has_before)
        sink_bytes(writer->sink, ",", 1);
    sink_bytes(writer->sink, "\n", 1);
    writer->has_before = true;
}

static uint64_t since_start(const struct writer *writer, uint64_t time_ns)
{
    return time_ns > writer->trace->start_ns ? time_ns - writer->trace->start_ns : 0;
}

// ---- the frames: index = the name's id

static void write_frames(struct writer *writer)
{
    put(writer, "\"shared\":{\"frames\":[");
    writer->has_before = false;
    for (uint32_t id = 0; id < names_id_count(writer->names); id++) {
        const struct name *name = names_by_id(writer->names, id);
        const char *file = name->file ? name->file : name->module;
        put_comma(writer);
        put(writer, "{\"name\":");
        sink_json_string(writer->sink, *name->function ? name->function : "[no name]");
        if (file && *file) {
            put(writer, ",\"file\":");
            sink_json_string(writer->sink, file);
        }
        put(writer, "}");
    }
    put(writer, "]},\n");
}

// ---- time: events

static bool write_event(struct writer *writer, const char *begin, uint64_t time_ns, uint32_t node, size_t index)
{
    writer->last_ns = since_start(writer, time_ns);
    put_comma(writer);
    put(writer, begin);
    sink_number(writer->sink, names_at(writer->names, node, index)->id);
    put(writer, ",\"at\":");
    sink_number(writer->sink, writer->last_ns);
    put(writer, "}");
    return !sink_failed(writer->sink);
}

static bool enter(void *context, uint64_t time_ns, uint32_t node, size_t index)
{
    return write_event(context, "{\"type\":\"O\",\"frame\":", time_ns, node, index);
}

static bool leave(void *context, uint64_t time_ns, uint32_t node, size_t index)
{
    return write_event(context, "{\"type\":\"C\",\"frame\":", time_ns, node, index);
}

static void perfetto_write_events(struct writer *writer, const struct trace_thread *thread)
{
    const struct slice_options slices = {.gap_ns = analysis_weights_gap_ns(writer->trace, thread)};
    const struct slice_events events = {.context = writer, .enter = enter, .leave = leave};
    const struct trace_sample *first = &writer->trace->samples[thread->first_sample];
    writer->has_before = false;
    writer->last_ns = since_start(writer, first->first_ns);
    put(writer, "\"events\":[");
    if (!export_slices_of_thread(writer->trace, writer->names, thread, &slices, &events))
        sink_no_memory(writer->sink);
    put(writer, "],\"startValue\":0,\"endValue\":");
    sink_number(writer->sink, writer->last_ns);
}

// ---- weights: samples

static void write_node(void *context, uint32_t node, struct sink *sink)
{
    const struct writer *writer = context;
    for (size_t i = names_count(writer->names, node); i-- > 0;) {
        sink_bytes(sink, ",", 1);
        sink_number(sink, names_at(writer->names, node, i)->id);
    }
}

static uint64_t weight_of(const struct writer *writer, size_t sample)
{
    return writer->selection->weights[sample][writer->options->weight];
}

static bool write_stacks(struct writer *writer, const struct trace_thread *thread)
{
    writer->has_before = false;
    put(writer, "\"samples\":[");
    for (size_t i = 0; i < thread->sample_count && !sink_failed(writer->sink); i++) {
        if (!weight_of(writer, thread->first_sample + i))
            continue;
        size_t size;
        const char *stack =
            export_stack_text_of(&writer->stacks, writer->trace->samples[thread->first_sample + i].node, &size);
        if (!stack)
            return false;
        put_comma(writer);
        put(writer, "[");
        sink_bytes(writer->sink, stack + (size > 0), size - (size > 0)); // without the first comma
        put(writer, "]");
    }
    return true;
}

static void write_weights(struct writer *writer, const struct trace_thread *thread)
{
    uint64_t sum = 0;
    put(writer, "],\"weights\":[");
    for (size_t i = 0; i < thread->sample_count && !sink_failed(writer->sink); i++) {
        uint64_t weight = weight_of(writer, thread->first_sample + i);
        if (!weight)
            continue;
        if (sum)
            put(writer, ",");
        sink_number(writer->sink, weight);
        sum += weight;
    }
    put(writer, "],\"startValue\":0,\"endValue\":");
    sink_number(writer->sink, sum);
}

// ----

static bool perfetto_write_thread(struct writer *writer, const struct trace_thread *thread)
{
    static const char *const units[EXPORT_WEIGHT_COUNT] = {"none",        "nanoseconds", "nanoseconds", "bytes",
                                                           "nanoseconds", "none",        "none"};
    bool is_time = writer->options->weight == EXPORT_WEIGHT_TIME, is_good = true;
    char name[CLEAN_THREAD_NAME_BYTES], process[CLEAN_PROCESS_NAME_BYTES];
    char text[CLEAN_PROCESS_NAME_BYTES + CLEAN_THREAD_NAME_BYTES + 80];
    int length = 0;
    if (writer->trace->process_count > 1)
        length = snprintf(text, sizeof text, "%s (%u): ", export_clean_process_name(writer->trace, thread, process),
                          trace_pid_of(writer->trace, thread));
    length += snprintf(text + length, sizeof text - (size_t)length, "%s (%u)", export_clean_thread_name(thread, name),
                       thread->tid);
    uint64_t missing = export_losses_of_thread(writer->trace, thread);
    if (missing)
        snprintf(text + length, sizeof text - (size_t)length, ", %ju samples are missing", (uintmax_t)missing);
    put(writer, is_time ? "{\"type\":\"evented\",\"name\":" : "{\"type\":\"sampled\",\"name\":");
    sink_json_string(writer->sink, text);
    put(writer, ",\"unit\":\"");
    put(writer, units[writer->options->weight]);
    put(writer, "\",");
    if (is_time) {
        perfetto_write_events(writer, thread);
    } else {
        is_good = write_stacks(writer, thread);
        write_weights(writer, thread);
    }
    put(writer, "}");
    return is_good;
}

static bool write_threads(struct writer *writer)
{
    const struct trace *trace = writer->trace;
    bool is_good = true, is_first = true;
    put(writer, "\"profiles\":[");
    for (size_t i = 0; i < trace->thread_count && is_good && !sink_failed(writer->sink); i++) {
        const struct trace_thread *thread = &trace->threads[i];
        if (!thread->sample_count)
            continue;
        put(writer, is_first ? "\n" : ",\n");
        is_first = false;
        is_good = perfetto_write_thread(writer, thread);
        if (writer->options->progress)
            writer->options->progress(writer->options->progress_context, i + 1, trace->thread_count);
    }
    put(writer, "],\n");
    return is_good;
}

// The profile with most samples is shown first.
static void write_active(struct writer *writer)
{
    const struct trace *trace = writer->trace;
    size_t count = 0, active = 0, most = 0;
    for (size_t i = 0; i < trace->thread_count; i++) {
        if (!trace->threads[i].sample_count)
            continue;
        if (trace->threads[i].sample_count > most) {
            most = trace->threads[i].sample_count;
            active = count;
        }
        count++;
    }
    put(writer, "\"activeProfileIndex\":");
    sink_number(writer->sink, active);
}

// The names are all that has a place for losses: this one, and those of the threads.
static void write_name(struct writer *writer)
{
    char losses[128], text[512];
    const char *path = writer->trace->path ? writer->trace->path : "trace";
    const char *slash = strrchr(path, '/');
    bool has_losses = export_losses_summary(writer->trace, losses, sizeof losses);
    snprintf(text, sizeof text, "%.300s%s%s%s", slash ? slash + 1 : path, has_losses ? " (" : "", losses,
             has_losses ? ")" : "");
    put(writer, ",\"name\":");
    sink_json_string(writer->sink, text);
}

static int write_speedscope(const struct selection *selection, const struct names *names,
                            const struct export_options *options, struct sink *sink, struct base_error *error)
{
    const struct trace *trace = &selection->trace;
    struct writer writer = {.selection = selection, .trace = trace, .names = names, .options = options, .sink = sink};
    writer.stacks = (struct stack_text){.trace = trace, .write = write_node, .context = &writer};
    bool is_good = export_stack_text_begin(&writer.stacks);
    if (is_good) {
        put(&writer, "{\"$schema\":\"https://www.speedscope.app/file-format-schema.json\",\n");
        write_frames(&writer);
        is_good = write_threads(&writer);
        write_active(&writer);
        write_name(&writer);
        put(&writer, ",\"exporter\":\"qut " QUT_VERSION "\"}\n");
    }
    export_stack_text_free(&writer.stacks);
    return is_good ? 0 : base_fail(error, BASE_ERR_NO_MEMORY, "", 0, "speedscope");
}

const struct export_format export_speedscope = {
    .name = "speedscope",
    .extension = ".speedscope.json",
    .what = "speedscope's JSON, a profile for each thread",
    .write = write_speedscope,
    .weight = EXPORT_WEIGHT_TIME,
};
