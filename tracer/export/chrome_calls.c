// SPDX-License-Identifier: Apache-2.0
// Exact calls in Chrome's format: slices on lanes, which are threads of their own there, with numbers that no thread
// has.
#include "tracer/export/chrome_calls.h"

#include "tracer/export/call_lanes.h"

enum { LANE_FIRST = 1 << 30 }; // as a thread's number

struct writer {
    const struct selection *selection;
    struct sink *sink;
    uint32_t pid, lane;
    bool *has_before;
};

static void begin_event(struct writer *writer, const char *phase, uint64_t time_ns, const char *name)
{
    const uint64_t start_ns = writer->selection->whole->start_ns;
    sink_text(writer->sink, *writer->has_before ? ",\n{\"ph\":\"" : "\n{\"ph\":\"");
    *writer->has_before = true;
    sink_text(writer->sink, phase);
    sink_text(writer->sink, "\",\"pid\":");
    sink_number(writer->sink, writer->pid);
    sink_text(writer->sink, ",\"tid\":");
    sink_number(writer->sink, LANE_FIRST + writer->lane);
    sink_text(writer->sink, ",\"ts\":");
    sink_fixed(writer->sink, (int64_t)(time_ns > start_ns ? time_ns - start_ns : 0), 3);
    sink_text(writer->sink, ",\"name\":");
    sink_json_string(writer->sink, *name ? name : "[no name]");
}

static void write_value(struct writer *writer, const char *key, const char *value)
{
    sink_text(writer->sink, ",\"args\":{\"");
    sink_text(writer->sink, key);
    sink_text(writer->sink, "\":");
    sink_json_string(writer->sink, value);
    sink_text(writer->sink, "}");
}

static bool end_event(struct writer *writer)
{
    sink_text(writer->sink, "}");
    return !sink_failed(writer->sink);
}

static bool on_lane(void *context, const struct call_events *calls, const struct call_events_thread *thread,
                    uint32_t number, const char *name)
{
    (void)thread;
    struct writer *writer = context;
    writer->pid = calls->told.pid;
    writer->lane = number;
    begin_event(writer, "M", writer->selection->whole->start_ns, "thread_name");
    write_value(writer, "name", name);
    return end_event(writer);
}

static bool on_begin(void *context, uint64_t time_ns, const struct name *name)
{
    struct writer *writer = context;
    begin_event(writer, "B", time_ns, name->function);
    sink_text(writer->sink, ",\"cat\":\"call\"");
    return end_event(writer);
}

static bool on_end(void *context, uint64_t time_ns, const struct name *name, const char *how)
{
    struct writer *writer = context;
    begin_event(writer, "E", time_ns, name->function);
    sink_text(writer->sink, ",\"cat\":\"call\"");
    if (how)
        write_value(writer, "end", how);
    return end_event(writer);
}

bool export_chrome_calls(const struct selection *selection, const struct names *names, struct sink *sink,
                         bool *has_before)
{
    struct writer writer = {.selection = selection, .sink = sink, .has_before = has_before};
    const struct call_lane_events events = {.lane = on_lane, .begin = on_begin, .end = on_end, .context = &writer};
    return export_call_lanes(selection, names, &events) || sink_failed(sink);
}
