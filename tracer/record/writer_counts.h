// SPDX-License-Identifier: Apache-2.0
// What the writers of a segment have counted so far, in one sum.
#ifndef TRACER_RECORD_WRITER_COUNTS_H
#define TRACER_RECORD_WRITER_COUNTS_H

#include "tracer/trace/segment_view.h"

// hits = stored + merged + throttled + sum(lost) + under_way
struct record_counts {
    uint64_t hits, stored, merged, throttled, under_way;
    uint64_t lost[QUT_TRACE_LOST_COUNT], cut[QUT_TRACE_CUT_COUNT];
    uint64_t overwritten;
    uint64_t threads_live, threads_seen;
};

// False: there was no memory to look, and *counts is as it was.
bool record_counts_of(const struct trace_segment_view *view, struct record_counts *counts);
void record_counts_add(struct record_counts *sum, const struct record_counts *more);
uint64_t record_counts_lost(const struct record_counts *counts); // for all reasons

#endif
