// SPDX-License-Identifier: Apache-2.0
// A trace for Perfetto (ui.perfetto.dev, its trace processor and what is built on that): samples as PerfSample, since
// those can say that a stack is not whole, and that samples are missing; the rest as track events.
//
//   head | for each thread: its track, then in the order of time samples, slices, marks, counters | account
//
// Packets are written as they come: what is kept are the numbers of what was said already.
#include <stdlib.h>

#include "tracer/export/perfetto/inside.h"

static int begin(struct perfetto *perfetto, struct base_error *error)
{
    size_t node_count = perfetto->trace->node_count;
    perfetto->frames.of_node = calloc(node_count + 1, sizeof *perfetto->frames.of_node);
    perfetto->errors = calloc(node_count + 1, sizeof *perfetto->errors);
    perfetto->event_names = calloc(perfetto_bit_words(names_id_count(perfetto->names)), sizeof *perfetto->event_names);
    if (!perfetto->frames.of_node || !perfetto->errors || !perfetto->event_names)
        return base_fail(error, BASE_ERR_NO_MEMORY, "", 0, "Perfetto: %zu nodes", node_count);
    return 0;
}

static int write_all(struct perfetto *perfetto, struct base_error *error)
{
    const struct trace *trace = perfetto->trace;
    const struct export_options *options = perfetto->options;
    perfetto_write_head(perfetto);
    size_t done = 0;
    for (size_t i = 0; i < trace->thread_count; i++) {
        const struct trace_thread *thread = &trace->threads[i];
        if (perfetto_write_events(perfetto, thread) < 0)
            return base_fail(error, BASE_ERR_NO_MEMORY, "", 0, "Perfetto: %zu samples", thread->sample_count);
        done += thread->sample_count;
        if (options->progress)
            options->progress(options->progress_context, done, trace->sample_count);
    }
    if (!options->no_slices && perfetto_write_calls(perfetto) < 0)
        return base_fail(error, BASE_ERR_NO_MEMORY, "", 0, "Perfetto: calls");
    perfetto_write_account(perfetto);
    export_protobuf_flush(&perfetto->out, true);
    if (perfetto->out.failed || perfetto->counters.has_failed)
        return base_fail(error, BASE_ERR_NO_MEMORY, "", 0, "Perfetto: a packet");
    return 0;
}

static int write_perfetto(const struct selection *selection, const struct names *names,
                          const struct export_options *options, struct sink *sink, struct base_error *error)
{
    static const struct export_options no_options;
    struct perfetto *perfetto = calloc(1, sizeof *perfetto);
    if (!perfetto)
        return base_fail(error, BASE_ERR_NO_MEMORY, "", 0, "Perfetto: the writer");
    perfetto->selection = selection;
    perfetto->trace = &selection->trace;
    perfetto->names = names;
    perfetto->options = options ? options : &no_options;
    perfetto->out.sink = sink;
    int status = begin(perfetto, error);
    if (status == 0)
        status = write_all(perfetto, error);
    perfetto_intern_free(perfetto);
    base_interner_free(&perfetto->counters);
    free(perfetto->event_names);
    free(perfetto->errors);
    export_protobuf_free(&perfetto->out);
    free(perfetto);
    return status;
}

const struct export_format export_perfetto = {
    .name = "perfetto",
    .extension = ".perfetto-trace",
    .what = "Perfetto's protobuf: all there is (ui.perfetto.dev, trace_processor)",
    .write = write_perfetto,
    .is_timeline = true,
    .is_binary = true,
};
