// SPDX-License-Identifier: Apache-2.0
// What was counted while the trace was taken, as a slice as long as it on the process's track; written last. Perfetto
// does not notice a file that ends early: where this slice is missing, or has no end, it did.
#include <stdio.h>

#include "tracer/export/losses.h"
#include "tracer/export/perfetto/inside.h"

static void annotate_number(struct protobuf *out, const char *name, unsigned field, uint64_t value)
{
    size_t annotation = export_protobuf_begin(out, EVENT_DEBUG_ANNOTATIONS);
    export_protobuf_text(out, ANNOTATION_NAME, name);
    export_protobuf_number(out, field, value);
    export_protobuf_end(out, annotation);
}

struct say {
    struct protobuf *out;
    unsigned count;
};

static void annotate_loss(void *context, const char *text)
{
    struct say *say = context;
    char name[32];
    snprintf(name, sizeof name, "loss %u", ++say->count);
    size_t annotation = export_protobuf_begin(say->out, EVENT_DEBUG_ANNOTATIONS);
    export_protobuf_text(say->out, ANNOTATION_NAME, name);
    export_protobuf_text(say->out, ANNOTATION_TEXT, text);
    export_protobuf_end(say->out, annotation);
}

static void annotate_named(struct protobuf *out, const char *what, const char *name, uint64_t value)
{
    char text[64];
    snprintf(text, sizeof text, "%s: %s", what, name);
    if (value)
        annotate_number(out, text, ANNOTATION_UINT, value);
}

static void annotate_counts(struct perfetto *perfetto)
{
    const struct trace *trace = perfetto->trace;
    struct protobuf *out = &perfetto->out;
    struct trace_balance balance = trace_balance(trace);
    const struct {
        const char *name;
        uint64_t value;
    } counts[] = {
        {"hits", trace->counts.hits},
        {"stored", trace->stored},
        {"merged", trace->merged},
        {"throttled", trace->counts.throttled},
        {"under way", trace->under_way},
        {"samples", trace->present_samples},
        {"overwritten samples", trace->overwritten_samples},
        {"damaged samples", trace->damaged_samples},
        {"damaged chunks", trace->damaged_chunks},
        {"damaged blocks", trace->damaged_blocks},
        {"complete", trace->is_complete},
        // Of this file.
        {"written samples", perfetto->samples},
        {"written slices", perfetto->slices},
        {"packets", perfetto->packets + 2}, // with the two that this is in
    };
    for (size_t i = 0; i < sizeof counts / sizeof *counts; i++)
        annotate_number(out, counts[i].name, ANNOTATION_UINT, counts[i].value);
    annotate_number(out, "missing in hits", ANNOTATION_INT, (uint64_t)balance.hits_missing);
    annotate_number(out, "missing in samples", ANNOTATION_INT, (uint64_t)balance.samples_missing);
    for (unsigned i = 0; i < QUT_TRACE_LOST_COUNT; i++)
        annotate_named(out, "lost", trace_lost_name(i), trace->counts.lost[i]);
    for (unsigned i = 0; i < QUT_TRACE_CUT_COUNT; i++)
        annotate_named(out, "cut", trace_cut_name(i), trace->counts.cut[i]);
    for (unsigned i = 0; i < QUT_TRACE_TOTAL_COUNT; i++)
        annotate_named(out, "total", trace_total_name(i), trace->totals[i]);
}

static void write_lost_sum(struct perfetto *perfetto)
{
    const struct trace *trace = perfetto->trace;
    uint64_t lost = trace->damaged_samples;
    for (unsigned i = 0; i < QUT_TRACE_LOST_COUNT; i++)
        lost += trace->counts.lost[i];
    perfetto_write_lost(perfetto, trace->end_ns, lost);
}

static size_t begin_event(struct perfetto *perfetto, uint64_t time_ns, enum track_event_type type, size_t *packet)
{
    *packet = perfetto_packet_begin_at(perfetto, time_ns, SEQUENCE_EVENTS);
    size_t event = export_protobuf_begin(&perfetto->out, PACKET_TRACK_EVENT);
    export_protobuf_number(&perfetto->out, EVENT_TYPE, type);
    export_protobuf_number(&perfetto->out, EVENT_TRACK_UUID, perfetto_track_uuid(perfetto, 0, TRACK_EVENTS));
    return event;
}

void perfetto_write_account(struct perfetto *perfetto)
{
    const struct trace *trace = perfetto->trace;
    struct protobuf *out = &perfetto->out;
    write_lost_sum(perfetto);
    perfetto_write_track(perfetto, perfetto_track_uuid(perfetto, 0, TRACK_EVENTS),
                         perfetto_track_uuid(perfetto, 0, TRACK_THREAD), "QUT trace");

    char summary[128];
    if (!export_losses_summary(trace, summary, sizeof summary))
        snprintf(summary, sizeof summary, "%s",
                 trace->is_complete ? "all samples are here" : "no sample is missing, but the trace was not closed");
    size_t packet, event = begin_event(perfetto, trace->start_ns, EVENT_SLICE_BEGIN, &packet);
    export_protobuf_text(out, EVENT_NAME, summary);
    annotate_counts(perfetto);
    struct say say = {.out = out};
    export_losses_say(trace, annotate_loss, &say);
    export_protobuf_end(out, event);
    perfetto_packet_end(perfetto, packet);

    uint64_t end_ns = trace->end_ns > trace->start_ns ? trace->end_ns : trace->start_ns;
    event = begin_event(perfetto, end_ns, EVENT_SLICE_END, &packet);
    export_protobuf_end(out, event);
    perfetto_packet_end(perfetto, packet);
}
