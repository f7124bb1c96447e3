// SPDX-License-Identifier: Apache-2.0
#include "tracer/export/perfetto/inside.h"

enum perf_sample_field {
    SAMPLE_PID = 2,
    SAMPLE_TID = 3,
    SAMPLE_CALLSTACK = 4,
    SAMPLE_UNWIND_ERROR = 16,
    SAMPLE_RECORDS_LOST = 17,
};
enum { UNWIND_NONE = 1, UNWIND_MAX_FRAMES = 6 };

// Samples that were merged are written one by one, up to so many: a spoiled trace can claim any number of them.
static const uint64_t samples_max = 100000000;

static void write_one(struct perfetto *perfetto, const struct trace_thread *thread, const struct trace_sample *sample,
                      unsigned kind, uint64_t time_ns)
{
    struct protobuf *out = &perfetto->out;
    unsigned error = sample->node ? perfetto->errors[sample->node] : UNWIND_NONE;
    if (error == UNWIND_NONE && sample->flags & QUT_TRACE_SAMPLE_CUT)
        error = UNWIND_MAX_FRAMES;
    size_t packet = perfetto_packet_begin_at(perfetto, time_ns, SEQUENCE_SAMPLES_FIRST + kind);
    size_t message = export_protobuf_begin(out, PACKET_PERF_SAMPLE);
    export_protobuf_number(out, SAMPLE_PID, trace_pid_of(perfetto->trace, thread));
    export_protobuf_number(out, SAMPLE_TID, thread->tid);
    if (sample->node)
        export_protobuf_number(out, SAMPLE_CALLSTACK, sample->node);
    if (error != UNWIND_NONE)
        export_protobuf_number(out, SAMPLE_UNWIND_ERROR, error);
    export_protobuf_end(out, message);
    perfetto_packet_end(perfetto, packet);
    perfetto->samples++;
}

int perfetto_write_sample(struct perfetto *perfetto, const struct trace_thread *thread,
                          const struct trace_sample *sample)
{
    unsigned kind = sample->kind < KIND_COUNT ? sample->kind : QUT_TRACE_KIND_OTHER;
    if (perfetto_intern_stack(perfetto, kind, sample->node) < 0)
        return -1;
    uint64_t length_ns = sample->last_ns > sample->first_ns ? sample->last_ns - sample->first_ns : 0;
    uint64_t step_ns = sample->count > 1 ? length_ns / (sample->count - 1) : 0;
    write_one(perfetto, thread, sample, kind, sample->first_ns);
    for (uint32_t i = 1; i < sample->count && perfetto->samples < samples_max; i++)
        write_one(perfetto, thread, sample, kind,
                  i + 1 == sample->count ? sample->first_ns + length_ns : sample->first_ns + i * step_ns);
    return 0;
}

void perfetto_write_lost(struct perfetto *perfetto, uint64_t time_ns, uint64_t count)
{
    // Any sequence of samples does: the count is the trace's.
    unsigned kind = QUT_TRACE_KIND_OTHER;
    while (kind + 1 < KIND_COUNT && !perfetto->sequences[kind])
        kind++;
    if (!perfetto->sequences[kind])
        kind = QUT_TRACE_KIND_OTHER;
    if (!count || !perfetto_intern_sequence(perfetto, kind))
        return;
    struct protobuf *out = &perfetto->out;
    size_t packet = perfetto_packet_begin_at(perfetto, time_ns, SEQUENCE_SAMPLES_FIRST + kind);
    size_t message = export_protobuf_begin(out, PACKET_PERF_SAMPLE);
    export_protobuf_number(out, SAMPLE_RECORDS_LOST, count);
    export_protobuf_end(out, message);
    perfetto_packet_end(perfetto, packet);
}
