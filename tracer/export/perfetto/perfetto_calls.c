// SPDX-License-Identifier: Apache-2.0
#include "tracer/export/call_lanes.h"
#include "tracer/export/perfetto/inside.h"

struct calls {
    struct perfetto *perfetto;
    uint64_t track; // of the lane
};

static void write_event(struct calls *calls, uint64_t time_ns, enum track_event_type type, uint64_t name_id,
                        const char *how)
{
    struct perfetto *perfetto = calls->perfetto;
    struct protobuf *out = &perfetto->out;
    const size_t packet = perfetto_packet_begin_at(perfetto, time_ns, SEQUENCE_EVENTS);
    const size_t message = export_protobuf_begin(out, PACKET_TRACK_EVENT);
    export_protobuf_number(out, EVENT_TYPE, type);
    export_protobuf_number(out, EVENT_TRACK_UUID, calls->track);
    if (name_id)
        export_protobuf_number(out, EVENT_NAME_IID, name_id);
    if (how) {
        const size_t annotation = export_protobuf_begin(out, EVENT_DEBUG_ANNOTATIONS);
        export_protobuf_text(out, ANNOTATION_NAME, "end");
        export_protobuf_text(out, ANNOTATION_TEXT, how);
        export_protobuf_end(out, annotation);
    }
    export_protobuf_end(out, message);
    perfetto_packet_end(perfetto, packet);
}

// The track of its thread, if that is shown, else of its process.
static uint64_t parent_of(const struct perfetto *perfetto, const struct call_events *calls,
                          const struct call_events_thread *thread)
{
    const struct trace *trace = perfetto->trace, *whole = perfetto->selection->whole;
    for (size_t i = 0; thread->thread != CALL_EVENTS_NONE && i < trace->thread_count; i++)
        if (trace->threads[i].uid == whole->threads[thread->thread].uid)
            return perfetto_track_uuid(perfetto, i + 1, TRACK_THREAD);
    for (uint32_t i = 0; i < trace->process_count; i++)
        if (trace->processes[i].pid == calls->told.pid && trace->processes[i].recording == calls->recording)
            return perfetto_process_uuid(perfetto, i);
    return perfetto_process_uuid(perfetto, 0);
}

static bool on_lane(void *context, const struct call_events *events, const struct call_events_thread *thread,
                    uint32_t number, const char *name)
{
    struct calls *calls = context;
    calls->track = calls->perfetto->uuid - 1 - number; // all others follow that
    perfetto_write_track(calls->perfetto, calls->track, parent_of(calls->perfetto, events, thread), name);
    return !calls->perfetto->out.failed;
}

static bool on_begin(void *context, uint64_t time_ns, const struct name *name)
{
    struct calls *calls = context;
    write_event(calls, time_ns, EVENT_SLICE_BEGIN, perfetto_intern_event_name(calls->perfetto, name), NULL);
    calls->perfetto->slices++;
    return !calls->perfetto->out.failed;
}

// Values of a slice may also come with its end.
static bool on_end(void *context, uint64_t time_ns, const struct name *name, const char *how)
{
    (void)name;
    struct calls *calls = context;
    write_event(calls, time_ns, EVENT_SLICE_END, 0, how);
    return !calls->perfetto->out.failed;
}

int perfetto_write_calls(struct perfetto *perfetto)
{
    struct calls calls = {.perfetto = perfetto};
    const struct call_lane_events events = {.lane = on_lane, .begin = on_begin, .end = on_end, .context = &calls};
    return export_call_lanes(perfetto->selection, perfetto->names, &events) ? 0 : -1;
}
