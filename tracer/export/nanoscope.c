// SPDX-License-Identifier: Apache-2.0
// "TIME_NS:+FUNCTION" where a function was entered, "TIME_NS:POP" where one was left. One thread.
#include <string.h>

#include "tracer/export/clean.h"
#include "tracer/export/export.h"
#include "tracer/export/sink/sink.h"
#include "tracer/export/slices.h"

struct writer {
    const struct trace *trace;
    const struct names *names;
    struct sink *sink;
    struct sink *name;
};

static void put_time(struct writer *writer, uint64_t time_ns)
{
    sink_number(writer->sink, time_ns > writer->trace->start_ns ? time_ns - writer->trace->start_ns : 0);
}

// '#' would begin remarks. The viewer gets the text in a page, which "</script>" would end.
static void put_name(struct writer *writer, const char *name)
{
    size_t size, begin = 0;
    sink_empty(writer->name);
    export_clean_text(writer->name, name, '#', '.');
    const char *text = (const char *)sink_memory(writer->name, &size);
    for (size_t i = 1; i < size; i++)
        if (text[i - 1] == '<' && text[i] == '/') {
            sink_bytes(writer->sink, text + begin, i - begin);
            sink_bytes(writer->sink, "|", 1);
            begin = i + 1;
        }
    sink_bytes(writer->sink, text + begin, size - begin);
}

static bool enter(void *context, uint64_t time_ns, uint32_t node, size_t index)
{
    struct writer *writer = context;
    put_time(writer, time_ns);
    sink_bytes(writer->sink, ":+", 2); // '+': the name is shown as it is
    put_name(writer, names_at(writer->names, node, index)->function);
    sink_bytes(writer->sink, "\n", 1);
    return !sink_failed(writer->sink);
}

static bool leave(void *context, uint64_t time_ns, uint32_t node, size_t index)
{
    struct writer *writer = context;
    (void)node;
    (void)index;
    put_time(writer, time_ns);
    sink_bytes(writer->sink, ":POP\n", 5);
    return !sink_failed(writer->sink);
}

static const struct trace_thread *find_busiest(const struct trace *trace)
{
    const struct trace_thread *found = NULL;
    for (size_t i = 0; i < trace->thread_count; i++) {
        const struct trace_thread *thread = &trace->threads[i];
        if (!found || thread->sample_count > found->sample_count)
            found = thread;
    }
    return found;
}

static int write_nanoscope(const struct selection *selection, const struct names *names,
                           const struct export_options *options, struct sink *sink, struct base_error *error)
{
    (void)options;
    const struct trace *trace = &selection->trace;
    const struct trace_thread *thread = find_busiest(trace);
    if (!thread || !thread->sample_count)
        return base_fail(error, BASE_ERR_UNSUPPORTED, "", 0, "Nanoscope shows one thread: this one has no samples");
    struct writer writer = {.trace = trace, .names = names, .sink = sink, .name = sink_in_memory()};
    if (!writer.name)
        return base_fail(error, BASE_ERR_NO_MEMORY, "", 0, "nanoscope");
    const struct slice_options slices = {.gap_ns = analysis_weights_gap_ns(trace, thread)};
    const struct slice_events events = {.context = &writer, .enter = enter, .leave = leave};
    if (!export_slices_of_thread(trace, names, thread, &slices, &events))
        sink_no_memory(sink);
    return sink_close(writer.name, true, error);
}

const struct export_format export_nanoscope = {
    .name = "nanoscope",
    .extension = ".nanoscope.txt",
    .what = "Nanoscope's text, of one thread: of those selected the one with most samples",
    .write = write_nanoscope,
    .weight = EXPORT_WEIGHT_TIME,
    .is_timeline = true,
};
