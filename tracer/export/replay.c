// SPDX-License-Identifier: Apache-2.0
// Exact calls as they went, one line for each entry and each exit, in the order of time; a call in which nothing else
// happened is one line.
#include <inttypes.h>
#include <stdio.h>

#include "tracer/analysis/call_part.h"
#include "tracer/export/clean.h"
#include "tracer/export/export.h"
#include "tracer/export/sink/sink.h"

enum { INDENT_MAX = 100, UNWANTED = 0, WANTED = 1 };

struct writer {
    const struct call_events *calls;
    const struct call_times_part *part;
    const struct names *names;
    struct sink *sink;
    uint64_t begin_ns; // of the trace
    bool has_pending;
    struct call_times_call pending; // entered, and not told yet
};

static const char *name_of(const struct writer *writer, uint32_t function)
{
    const uint32_t node = writer->calls->functions.items[function].node;
    return names_at(writer->names, node, names_count(writer->names, node) - 1)->function;
}

// "12.345678 s  " of the time since the trace began, and the duration where it is known.
static void begin_line(struct writer *writer, uint64_t ns, const uint64_t *duration_ns,
                       const struct call_times_call *call)
{
    char text[80];
    const uint64_t since = ns > writer->begin_ns ? ns - writer->begin_ns : 0;
    const int length =
        snprintf(text, sizeof text, "%6" PRIu64 ".%09" PRIu64 " ", since / 1000000000, since % 1000000000);
    sink_bytes(writer->sink, text, (size_t)length);
    if (duration_ns)
        snprintf(text, sizeof text, "%12" PRIu64 ".%03" PRIu64 " ", *duration_ns / 1000, *duration_ns % 1000);
    else
        snprintf(text, sizeof text, "%16s ", "");
    sink_text(writer->sink, text);
    snprintf(text, sizeof text, "%8" PRIu32 " | %*s", writer->calls->threads.items[call->thread].tid,
             (int)(2 * (call->depth < INDENT_MAX / 2 ? call->depth : INDENT_MAX / 2)), "");
    sink_text(writer->sink, text);
}

static void write_function(struct writer *writer, uint32_t function)
{
    const char *name = name_of(writer, function);
    export_clean_text(writer->sink, name, '\n', ' ');
    if (!*name || name[strlen(name) - 1] != ')')
        sink_text(writer->sink, "()");
}

static void flush(struct writer *writer)
{
    if (!writer->has_pending)
        return;
    writer->has_pending = false;
    begin_line(writer, writer->pending.begin_ns, NULL, &writer->pending);
    write_function(writer, writer->pending.function);
    sink_text(writer->sink, " {\n");
}

static void enter(void *context, struct call_times_call *call, const struct call_times_call *outer)
{
    (void)outer;
    struct writer *writer = context;
    const struct call_times_part *part = writer->part;
    const bool is_wanted =
        call->begin_ns >= part->from_ns && call->begin_ns <= part->to_ns && part->threads[call->thread];
    call->own = is_wanted ? WANTED : UNWANTED;
    if (!is_wanted)
        return;
    flush(writer);
    writer->has_pending = true;
    writer->pending = *call;
}

static void write_how(struct writer *writer, const struct call_times_call *call, bool is_short)
{
    if (call->how == CALL_TIMES_RETURNED && is_short)
        return;
    sink_text(writer->sink, is_short ? "  /* " : " /* ");
    if (!is_short)
        write_function(writer, call->function);
    if (call->how != CALL_TIMES_RETURNED) {
        sink_text(writer->sink, is_short ? "" : ", ");
        sink_text(writer->sink, call_times_how_name(call->how));
    }
    sink_text(writer->sink, " */");
}

static void leave(void *context, const struct call_times_call *call, const struct call_times_call *outer)
{
    (void)outer;
    struct writer *writer = context;
    const uint64_t ns = call->end_ns - call->begin_ns;
    if (call->own == UNWANTED)
        return;
    const bool is_short = writer->has_pending && writer->pending.number == call->number;
    if (is_short)
        writer->has_pending = false;
    else
        flush(writer);
    begin_line(writer, is_short ? call->begin_ns : call->end_ns, &ns, call);
    if (is_short)
        write_function(writer, call->function);
    sink_text(writer->sink, is_short ? ";" : "}");
    write_how(writer, call, is_short);
    sink_text(writer->sink, "\n");
}

// What stands for more calls than are there.
static void write_ratios(struct writer *writer)
{
    for (uint32_t i = 0; i < writer->calls->functions.count; i++) {
        const struct call_events_function *function = &writer->calls->functions.items[i];
        const uint64_t one_of = call_events_one_of(function);
        char text[64];
        if (!one_of)
            continue;
        snprintf(text, sizeof text, "# [%d of %" PRIu64 "] ", one_of != UINT64_MAX,
                 one_of == UINT64_MAX ? function->counted : one_of);
        sink_text(writer->sink, text);
        write_function(writer, i);
        sink_text(writer->sink, "\n");
    }
}

static int write_process(const struct selection *selection, const struct call_events *calls, const struct names *names,
                         struct sink *sink, struct base_error *error)
{
    struct analysis_call_part part;
    struct call_times_account account;
    if (!analysis_call_part_make(&part, selection, calls))
        return base_fail(error, BASE_ERR_NO_MEMORY, "", 0, "replay");
    struct writer writer = {
        .calls = calls, .part = &part.part, .names = names, .sink = sink, .begin_ns = selection->whole->start_ns};
    const struct call_times_visitor visitor = {.enter = enter, .leave = leave, .context = &writer};
    char text[64];
    snprintf(text, sizeof text, "# process %" PRIu32, calls->told.pid);
    sink_text(sink, text);
    if (selection->whole->recording_count) {
        sink_text(sink, " of ");
        sink_text(sink, selection->whole->recordings[calls->recording].name);
    }
    sink_text(sink, "\n");
    write_ratios(&writer);
    sink_text(sink, "#         TIME s      DURATION us      TID   FUNCTION\n");
    const int status = call_times_walk(calls, &visitor, &account, error);
    flush(&writer);
    analysis_call_part_free(&part);
    return status;
}

static int write_replay(const struct selection *selection, const struct names *names,
                        const struct export_options *options, struct sink *sink, struct base_error *error)
{
    (void)options;
    const struct trace *trace = selection->whole;
    if (!trace->calls_count)
        return base_fail(error, BASE_ERR_UNSUPPORTED, "", 0,
                         "it has no exact calls, which are what a replay is of: qut trace records them");
    int status = 0;
    for (size_t i = 0; i < trace->calls_count && status == 0; i++)
        status = write_process(selection, trace->calls[i], names, sink, error);
    return status;
}

const struct export_format export_replay = {
    .name = "replay",
    .extension = ".replay.txt",
    .what = "exact calls (qut trace) as they went, a line for each entry and exit, as text",
    .write = write_replay,
    .weight = EXPORT_WEIGHT_TIME,
    .is_timeline = true,
};
