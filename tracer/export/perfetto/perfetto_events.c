// SPDX-License-Identifier: Apache-2.0
// What happened in a thread, beside its samples: slices and marks, what it waited for, counters, what is missing.
#include <stdio.h>
#include <string.h>

#include "tracer/export/clean.h"
#include "tracer/export/perfetto/inside.h"
#include "tracer/export/slices.h"

struct events {
    struct perfetto *perfetto;
    const struct trace_thread *thread;
    size_t index; // of the thread, + 1
    bool has_track[TRACK_COUNT];
    bool no_memory;
    bool mark_is_open;
    uint64_t last_ns; // of what was written
    uint64_t cpu_ns;
    uint64_t metrics[QUT_TRACE_METRIC_COUNT];
    struct trace_gap gap; // that may be continued by the next one
    bool has_gap;
};

struct event {
    size_t packet, message;
};

// An event, which lasts until end_event, on a track of its own. uuid 0: on the default one.
static struct event begin_event(struct events *events, uint64_t time_ns, enum track_event_type type, uint64_t uuid)
{
    struct event event;
    if (time_ns > events->last_ns)
        events->last_ns = time_ns;
    event.packet = perfetto_packet_begin_at(events->perfetto, time_ns, SEQUENCE_EVENTS);
    event.message = export_protobuf_begin(&events->perfetto->out, PACKET_TRACK_EVENT);
    export_protobuf_number(&events->perfetto->out, EVENT_TYPE, type);
    if (uuid)
        export_protobuf_number(&events->perfetto->out, EVENT_TRACK_UUID, uuid);
    return event;
}

static void end_event(struct events *events, struct event event)
{
    export_protobuf_end(&events->perfetto->out, event.message);
    perfetto_packet_end(events->perfetto, event.packet);
}

static void name_event(struct events *events, const char *name)
{
    export_protobuf_text(&events->perfetto->out, EVENT_NAME, name);
}

static void annotate(struct events *events, const char *name, unsigned field, uint64_t value)
{
    struct protobuf *out = &events->perfetto->out;
    size_t annotation = export_protobuf_begin(out, EVENT_DEBUG_ANNOTATIONS);
    export_protobuf_text(out, ANNOTATION_NAME, name);
    export_protobuf_number(out, field, value);
    export_protobuf_end(out, annotation);
}

// A track of the thread, said when it is first used.
static uint64_t track_of(struct events *events, enum track track)
{
    static const char *const names[] = {
        [TRACK_SLICES] = "samples", [TRACK_BLOCKED] = "blocked", [TRACK_EVENTS] = "events",
        [TRACK_MARKS] = "marks",    [TRACK_LOSSES] = "losses",
    };
    struct perfetto *perfetto = events->perfetto;
    uint64_t uuid = perfetto_track_uuid(perfetto, events->index, track);
    if (events->has_track[track])
        return uuid;
    events->has_track[track] = true;
    uint64_t parent = perfetto_track_uuid(perfetto, events->index, TRACK_THREAD);
    if (track < TRACK_CPU) {
        char thread_name[CLEAN_THREAD_NAME_BYTES], name[CLEAN_THREAD_NAME_BYTES + 16];
        snprintf(name, sizeof name, "%s (%s)", export_clean_thread_name(events->thread, thread_name), names[track]);
        perfetto_write_track(perfetto, uuid, parent, name);
    } else if (track == TRACK_CPU) {
        perfetto_write_counter_track(perfetto, uuid, parent, "cpu time", UNIT_TIME_NS);
    } else {
        unsigned metric = track - TRACK_METRICS_FIRST;
        perfetto_write_counter_track(perfetto, uuid, parent, trace_metric_name(metric),
                                     metric == QUT_TRACE_METRIC_ALLOCATED_BYTES ? UNIT_BYTES : UNIT_COUNT);
    }
    return uuid;
}

uint64_t perfetto_intern_event_name(struct perfetto *perfetto, const struct name *name)
{
    const uint64_t id = (uint64_t)name->id + 1;
    if (perfetto_bit_get(perfetto->event_names, name->id))
        return id;
    enum { NAME_ID = 1, NAME_TEXT = 2 };
    perfetto_bit_set(perfetto->event_names, name->id);
    size_t packet = perfetto_packet_begin(perfetto, SEQUENCE_EVENTS, FLAG_NEEDS_STATE);
    size_t data = export_protobuf_begin(&perfetto->out, PACKET_INTERNED_DATA);
    size_t message = export_protobuf_begin(&perfetto->out, INTERNED_EVENT_NAMES);
    export_protobuf_number(&perfetto->out, NAME_ID, id);
    export_protobuf_text(&perfetto->out, NAME_TEXT, name->function);
    export_protobuf_end(&perfetto->out, message);
    export_protobuf_end(&perfetto->out, data);
    perfetto_packet_end(perfetto, packet);
    return id;
}

static bool on_enter(void *context, uint64_t time_ns, uint32_t node, size_t index)
{
    struct events *events = context;
    struct perfetto *perfetto = events->perfetto;
    const uint64_t id = perfetto_intern_event_name(perfetto, names_at(perfetto->names, node, index));
    struct event event = begin_event(events, time_ns, EVENT_SLICE_BEGIN, 0);
    export_protobuf_number(&perfetto->out, EVENT_NAME_IID, id);
    end_event(events, event);
    perfetto->slices++;
    return true;
}

static bool on_leave(void *context, uint64_t time_ns, uint32_t node, size_t index)
{
    (void)node;
    (void)index;
    struct events *events = context;
    end_event(events, begin_event(events, time_ns, EVENT_SLICE_END, 0));
    return true;
}

static void write_signed_counter(struct events *events, uint64_t time_ns, uint64_t uuid, int64_t value)
{
    struct event event = begin_event(events, time_ns, EVENT_COUNTER, uuid);
    export_protobuf_number(&events->perfetto->out, EVENT_COUNTER_VALUE, (uint64_t)value);
    end_event(events, event);
}

static void write_counter(struct events *events, uint64_t time_ns, uint64_t uuid, uint64_t value)
{
    write_signed_counter(events, time_ns, uuid, value < INT64_MAX ? (int64_t)value : INT64_MAX);
}

static void write_counters(struct events *events, const struct trace_sample *sample)
{
    const struct trace *trace = events->perfetto->trace;
    if (trace->has_cpu_time && (sample->cpu_ns != events->cpu_ns || !events->has_track[TRACK_CPU])) {
        events->cpu_ns = sample->cpu_ns;
        write_counter(events, sample->last_ns, track_of(events, TRACK_CPU), sample->cpu_ns);
    }
    if (sample->metrics == TRACE_NONE)
        return;
    for (unsigned i = 0; i < QUT_TRACE_METRIC_COUNT; i++) {
        uint64_t value = trace->metrics[sample->metrics][i];
        enum track track = (enum track)(TRACK_METRICS_FIRST + i);
        if (!(trace->metric_mask >> i & 1) || (events->has_track[track] && value == events->metrics[i]))
            continue;
        events->metrics[i] = value;
        write_counter(events, sample->last_ns, track_of(events, track), value);
    }
}

static void annotate_extra(struct events *events, const struct trace_extra *extra)
{
    const char *name = trace_extra_name(extra->key);
    char own[32];
    switch (extra->key) {
    case QUT_TRACE_EXTRA_DURATION_NS:
    case QUT_TRACE_EXTRA_BEGIN_NODE: return;
    case QUT_TRACE_EXTRA_LOCK:
    case QUT_TRACE_EXTRA_ADDRESS: annotate(events, name, ANNOTATION_POINTER, extra->value); return;
    case QUT_TRACE_EXTRA_RESULT: annotate(events, name, ANNOTATION_INT, extra->value); return;
    default: break;
    }
    if (extra->key >= QUT_TRACE_EXTRA_OWN_FIRST) {
        snprintf(own, sizeof own, "own-%u", extra->key - QUT_TRACE_EXTRA_OWN_FIRST);
        name = own;
    }
    annotate(events, name, ANNOTATION_UINT, extra->value);
}

static void annotate_sample(struct events *events, const struct trace_sample *sample)
{
    for (unsigned i = 0; i < sample->extra_count; i++)
        annotate_extra(events, &events->perfetto->trace->extras[sample->first_extra + i]);
}

// A sample that carries more than a stack is an event too, one that ends an interval a slice. Where a flow goes from is
// an instant, where it ends another one, at the end of the interval.
static void write_extras(struct events *events, const struct trace_sample *sample)
{
    struct perfetto *perfetto = events->perfetto;
    const struct trace *trace = perfetto->trace;
    const char *kind = trace_kind_name(trace, sample->kind);
    uint64_t duration_ns, flow;
    bool has_flow = trace_extra(trace, sample, QUT_TRACE_EXTRA_FLOW, &flow);
    if (!trace_extra(trace, sample, QUT_TRACE_EXTRA_DURATION_NS, &duration_ns)) {
        struct event event = begin_event(events, sample->first_ns, EVENT_INSTANT, track_of(events, TRACK_EVENTS));
        name_event(events, kind);
        annotate_sample(events, sample);
        if (has_flow)
            export_protobuf_fixed64(&perfetto->out, EVENT_FLOW_IDS, flow);
        end_event(events, event);
        return;
    }
    uint64_t uuid = track_of(events, TRACK_BLOCKED);
    uint64_t begin_ns = duration_ns < sample->first_ns ? sample->first_ns - duration_ns : 0;
    struct event event = begin_event(events, begin_ns, EVENT_SLICE_BEGIN, uuid);
    name_event(events, kind);
    annotate_sample(events, sample);
    end_event(events, event);
    if (has_flow) {
        event = begin_event(events, sample->first_ns, EVENT_INSTANT, uuid);
        name_event(events, "resumed");
        export_protobuf_fixed64(&perfetto->out, EVENT_TERMINATING_FLOW_IDS, flow);
        end_event(events, event);
    }
    end_event(events, begin_event(events, sample->first_ns, EVENT_SLICE_END, uuid));
}

// What began and did not end: as long as nothing else is known of its thread.
static void write_open(struct events *events, const struct trace_sample *sample)
{
    const struct trace *trace = events->perfetto->trace;
    uint64_t uuid = track_of(events, TRACK_BLOCKED);
    char name[64];
    snprintf(name, sizeof name, "%.40s (did not end)", trace_kind_name(trace, sample->kind));
    struct event event = begin_event(events, sample->first_ns, EVENT_SLICE_BEGIN, uuid);
    name_event(events, name);
    end_event(events, event);
    end_event(events, begin_event(events, trace_open_until(trace, events->thread, sample), EVENT_SLICE_END, uuid));
}

static bool on_sample(void *context, const struct trace_sample *sample)
{
    struct events *events = context;
    if (perfetto_write_sample(events->perfetto, events->thread, sample) < 0) {
        events->no_memory = true;
        return false;
    }
    write_counters(events, sample);
    if (sample->is_open)
        write_open(events, sample);
    if (sample->extra_count)
        write_extras(events, sample);
    return true;
}

static void end_mark(struct events *events, uint64_t time_ns)
{
    if (events->mark_is_open)
        end_event(events, begin_event(events, time_ns, EVENT_SLICE_END, track_of(events, TRACK_MARKS)));
    events->mark_is_open = false;
}

static void write_mark_counter(struct events *events, const struct trace_mark *mark)
{
    struct perfetto *perfetto = events->perfetto;
    const char *name = *mark->name ? mark->name : "counter";
    char own[4096]; // the process's, whose track it stands below
    snprintf(own, sizeof own, "%u %s", events->thread->process, name);
    size_t known = perfetto->counters.count;
    uint32_t number = base_interner_add(&perfetto->counters, own);
    uint64_t uuid = perfetto_counter_uuid(perfetto, number);
    if (number >= known)
        perfetto_write_counter_track(perfetto, uuid, perfetto_process_uuid(perfetto, events->thread->process), name,
                                     UNIT_NONE);
    write_signed_counter(events, mark->time_ns, uuid, (int64_t)mark->id);
}

static bool on_mark(void *context, const struct trace_mark *mark)
{
    struct events *events = context;
    if (mark->kind == QUT_TRACE_MARK_COUNTER) {
        write_mark_counter(events, mark);
        return true;
    }
    if (mark->kind != QUT_TRACE_MARK_INSTANT)
        end_mark(events, mark->time_ns);
    if (mark->kind == QUT_TRACE_MARK_END)
        return true;
    bool begins = mark->kind == QUT_TRACE_MARK_BEGIN;
    events->mark_is_open |= begins;
    struct event event =
        begin_event(events, mark->time_ns, begins ? EVENT_SLICE_BEGIN : EVENT_INSTANT, track_of(events, TRACK_MARKS));
    name_event(events, *mark->name ? mark->name : "mark");
    annotate(events, "id", ANNOTATION_UINT, mark->id);
    end_event(events, event);
    return true;
}

static void end_gap(struct events *events)
{
    if (!events->has_gap)
        return;
    static const char *const reasons[] = {
        [TRACE_GAP_LOST] = "lost", [TRACE_GAP_OVERWRITTEN] = "overwritten", [TRACE_GAP_DAMAGED] = "damaged"};
    const struct trace_gap *gap = &events->gap;
    uint64_t uuid = track_of(events, TRACK_LOSSES);
    char name[64];
    snprintf(name, sizeof name, "%ju samples %s", (uintmax_t)gap->lost,
             gap->reason <= TRACE_GAP_DAMAGED ? reasons[gap->reason] : "missing");
    struct event event = begin_event(events, gap->from_ns, EVENT_SLICE_BEGIN, uuid);
    name_event(events, name);
    annotate(events, "samples", ANNOTATION_UINT, gap->lost);
    end_event(events, event);
    uint64_t to_ns = gap->to_ns < events->perfetto->trace->end_ns ? gap->to_ns : events->perfetto->trace->end_ns;
    end_event(events, begin_event(events, to_ns > gap->from_ns ? to_ns : gap->from_ns, EVENT_SLICE_END, uuid));
    events->has_gap = false;
}

// Gaps of a thread's levels may overlap, which slices cannot: they become one.
static bool on_gap(void *context, const struct trace_gap *gap)
{
    struct events *events = context;
    if (events->has_gap && gap->from_ns < events->gap.to_ns) {
        events->gap.lost += gap->lost;
        if (gap->to_ns > events->gap.to_ns)
            events->gap.to_ns = gap->to_ns;
        if (gap->reason != events->gap.reason)
            events->gap.reason = UINT32_MAX;
        return true;
    }
    end_gap(events);
    events->gap = *gap;
    events->has_gap = true;
    return true;
}

static bool write_without_slices(struct events *events)
{
    const struct trace *trace = events->perfetto->trace;
    const struct trace_thread *thread = events->thread;
    for (size_t i = 0; i < thread->sample_count; i++)
        if (!on_sample(events, &trace->samples[thread->first_sample + i]))
            return false;
    for (size_t i = 0; i < thread->mark_count; i++)
        on_mark(events, &trace->marks[thread->first_mark + i]);
    for (size_t i = 0; i < thread->gap_count; i++)
        on_gap(events, &trace->gaps[thread->first_gap + i]);
    return true;
}

int perfetto_write_events(struct perfetto *perfetto, const struct trace_thread *thread)
{
    const struct trace *trace = perfetto->trace;
    struct events events = {.perfetto = perfetto, .thread = thread, .index = (size_t)(thread - trace->threads) + 1};
    perfetto_write_thread(perfetto, thread);
    bool went_well;
    if (perfetto->options->no_slices) {
        went_well = write_without_slices(&events);
    } else {
        if (thread->sample_count)
            perfetto_write_default_track(perfetto, track_of(&events, TRACK_SLICES));
        struct slice_options options = {.gap_ns = analysis_weights_gap_ns(trace, thread)};
        struct slice_events wanted = {&events, on_enter, on_leave, on_sample, on_mark, on_gap};
        went_well = export_slices_of_thread(trace, perfetto->names, thread, &options, &wanted);
    }
    end_gap(&events);
    end_mark(&events,
             thread->end_ns > events.last_ns && thread->end_ns != UINT64_MAX ? thread->end_ns : events.last_ns);
    return went_well ? 0 : -1;
}
