// SPDX-License-Identifier: Apache-2.0
// A chunk says what it counts from: where that is not the end of the one before, chunks are missing between them. And
// it says how many hits its writer had lost when it began and when it was sealed.
#include "tracer/trace/inside.h"

static void add_gap(struct gap_finder *finder, uint64_t from_ns, uint64_t to_ns, uint64_t lost,
                    enum trace_gap_reason reason)
{
    struct trace_gap *gap = trace_vector_add(&finder->gaps);
    if (!gap) {
        finder->failed = true;
        return;
    }
    *gap = (struct trace_gap){
        .from_ns = from_ns, .to_ns = to_ns > from_ns ? to_ns : from_ns, .lost = lost, .reason = reason};
}

static void add_lost(struct gap_finder *finder, uint64_t from_ns, uint64_t to_ns, uint64_t lost_then, uint64_t lost_now)
{
    if (lost_now > lost_then)
        add_gap(finder, from_ns, to_ns, lost_now - lost_then, TRACE_GAP_LOST);
}

void trace_gaps_begin(struct gap_finder *finder, uint64_t start_ns)
{
    finder->end_time = start_ns >> finder->time_shift;
    finder->lost = 0;
    finder->has_chunk = false;
}

void trace_gaps_chunk(struct gap_finder *finder, const struct qut_trace_chunk *header, const struct decoded *decoded,
                      uint64_t lost_at_end)
{
    unsigned shift = finder->time_shift;
    uint64_t from_ns = finder->end_time << shift;
    uint64_t base_ns = header->base_time << shift;
    // A writer's first chunk begins with its first record, others with the end of the one before.
    bool is_first = !finder->has_chunk && decoded->first_record_ns == base_ns;
    if (header->base_time > finder->end_time && !is_first)
        add_gap(finder, from_ns, base_ns, 0, finder->missing_reason);
    uint64_t first_ns = decoded->first_record_ns ? decoded->first_record_ns : base_ns;
    add_lost(finder, from_ns, first_ns, finder->lost, header->lost_before);
    uint64_t begin_ns = base_ns > from_ns ? base_ns : from_ns;
    add_lost(finder, begin_ns, decoded->end_time << shift, header->lost_before, lost_at_end);
    if (decoded->end_time > finder->end_time)
        finder->end_time = decoded->end_time;
    finder->lost = lost_at_end;
    finder->has_chunk = true;
}

void trace_gaps_end(struct gap_finder *finder, const struct qut_trace_file_writer *writer, uint64_t end_ns)
{
    if (!writer)
        return;
    unsigned shift = finder->time_shift;
    const struct qut_trace_commit *commit = &writer->commit;
    uint64_t end_time = commit->run.count ? commit->run.last_time : commit->time;
    if (end_time > finder->end_time && end_time <= UINT64_MAX >> shift && commit->stored) {
        add_gap(finder, finder->end_time << shift, end_time << shift, 0, finder->missing_reason);
        finder->end_time = end_time;
    }
    uint64_t lost = 0;
    for (unsigned i = 0; i < QUT_TRACE_LOST_COUNT; i++)
        lost += writer->counts.lost[i];
    add_lost(finder, finder->end_time << shift, end_ns, finder->lost, lost);
}
