// SPDX-License-Identifier: Apache-2.0
// A segment read again and again: each time what is new since the last one. A writer's chunks have numbers that grow,
// and within a chunk samples come behind those that are there: how far each writer was read is one of each.
#ifndef TRACER_TRACE_NEWER_NEWER_H
#define TRACER_TRACE_NEWER_NEWER_H

#include "base/vector.h"
#include "tracer/trace/segment_view.h"
#include "tracer/trace/trace_data.h"

struct newer_writer {
    uint32_t uid, level;
    uint64_t seq;     // of the last chunk of its that was read
    uint64_t samples; // of that chunk, runs with all that they count
    uint64_t cpu_ns;  // of the last of them
};
// Zeros: nothing was read. Sorted by uid and level.
struct newer_seen {
    BASE_VECTOR(struct newer_writer);
};
void newer_seen_free(struct newer_seen *seen);
// A writer behind those that are there. False: no memory, or it is not behind them.
bool newer_seen_add(struct newer_seen *seen, const struct newer_writer *writer);

// What the store has counted so far. Cheap: no chunk is looked at.
struct newer_told {
    uint64_t samples; // stored or merged
    uint64_t lost;    // hits, for whatever reason
    uint64_t marks;   // that were made
    bool is_closed;
};
int newer_count_told(const struct trace_segment_view *view, struct newer_told *told, struct base_error *error);

// A trace of what is new since `seen` (freed as any other); *now, empty before, is to be `seen` the next time. Where a
// thread was read before, its first sample has count 0: it stands for none, and says from where processor time and
// metrics grow. The trace's own counts are of the samples that are in it (present_samples); *told is what the store had
// counted when it was read. Marks and gaps are left out. 0; or -1, *error filled.
int newer_read(const struct trace_segment_view *view, const struct newer_seen *seen, struct trace *trace,
               struct newer_told *told, struct newer_seen *now, struct base_error *error);
// The same with marks: those of the chunks that were read, in which some may be that were there before.
int newer_read_marks(const struct trace_segment_view *view, const struct newer_seen *seen, struct trace *trace,
                     struct newer_told *told, struct newer_seen *now, struct base_error *error);

#endif
