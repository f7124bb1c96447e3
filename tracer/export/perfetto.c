// SPDX-License-Identifier: Apache-2.0
// A trace for Perfetto (ui.perfetto.dev, its trace processor and what is built on that): samples as PerfSample, since
// those can say that a stack is not whole, and that samples are missing; the rest as track events.
//
//   head | for each thread: its track, then in the order of time samples, slices, marks, counters | account
//
// Packets are written as they come: what is kept are the numbers of what was said already.
#include <stdlib.h>

#include "tracer/export/perfetto_inside.h"

static int begin(struct perfetto *perfetto, struct qutc_error *error)
{
    size_t node_count = perfetto->trace->node_count;
    perfetto->frames.of_node = calloc(node_count + 1, sizeof *perfetto->frames.of_node);
    perfetto->errors = calloc(node_count + 1, sizeof *perfetto->errors);
    perfetto->event_names = calloc(bit_words(names_id_count(perfetto->names)), sizeof *perfetto->event_names);
    if (!perfetto->frames.of_node || !perfetto->errors || !perfetto->event_names ||
        !string_table_begin(&perfetto->counters))
        return qutc_fail(error, QUTC_ERR_NO_MEMORY, "perfetto", 0, "%zu nodes", node_count);
    return 0;
}

static int write_all(struct perfetto *perfetto, struct qutc_error *error)
{
    const struct trace *trace = perfetto->trace;
    const struct export_options *options = perfetto->options;
    write_head(perfetto);
    size_t done = 0;
    for (size_t i = 0; i < trace->thread_count; i++) {
        const struct trace_thread *thread = &trace->threads[i];
        if (options->thread && options->thread != thread->uid)
            continue;
        if (write_events(perfetto, thread) < 0)
            return qutc_fail(error, QUTC_ERR_NO_MEMORY, "perfetto", 0, "%zu samples", thread->sample_count);
        done += thread->sample_count;
        if (options->progress)
            options->progress(options->progress_context, done, trace->sample_count);
    }
    write_account(perfetto);
    protobuf_flush(&perfetto->out, true);
    if (perfetto->out.failed || perfetto->counters.has_failed)
        return qutc_fail(error, QUTC_ERR_NO_MEMORY, "perfetto", 0, "a packet");
    return 0;
}

static int write_perfetto(const struct trace *trace, const struct names *names, const struct export_options *options,
                          struct sink *sink, struct qutc_error *error)
{
    static const struct export_options no_options;
    struct perfetto *perfetto = calloc(1, sizeof *perfetto);
    if (!perfetto)
        return qutc_fail(error, QUTC_ERR_NO_MEMORY, "perfetto", 0, "the writer");
    perfetto->trace = trace;
    perfetto->names = names;
    perfetto->options = options ? options : &no_options;
    perfetto->out.sink = sink;
    int status = begin(perfetto, error);
    if (status == 0)
        status = write_all(perfetto, error);
    intern_free(perfetto);
    string_table_free(&perfetto->counters);
    free(perfetto->event_names);
    free(perfetto->errors);
    protobuf_free(&perfetto->out);
    free(perfetto);
    return status;
}

const struct export_format export_perfetto = {
    .name = "perfetto",
    .extension = ".perfetto-trace",
    .what = "Perfetto: ui.perfetto.dev, trace processor",
    .write = write_perfetto,
    .is_binary = true,
};
