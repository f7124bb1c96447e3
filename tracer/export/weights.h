// SPDX-License-Identifier: Apache-2.0
// What a sample counts for: one, or the time until the next one, ...
#ifndef TRACER_EXPORT_WEIGHTS_H
#define TRACER_EXPORT_WEIGHTS_H

#include "tracer/export/export.h"

struct weights {
    uint64_t of[EXPORT_WEIGHT_COUNT];
    uint64_t from_ns, to_ns; // when its stack is taken to have been there: of[TIME] is what lies between
};

// The samples of one thread, from the first to the last.
struct weights_walk {
    const struct trace *trace;
    const struct trace_thread *thread;
    size_t next, next_gap;
    uint64_t gap_ns;  // slices_gap_ns: further apart, nothing is known of the time between
    uint64_t from_ns; // where the next one's time begins
    uint64_t last_ns; // of all before: runs of one level lie inside of runs of another
    uint64_t cpu_ns;  // of the one before
    uint64_t allocated_bytes;
    bool has_cpu, has_allocated;
};

void weights_begin(struct weights_walk *walk, const struct trace *trace, const struct trace_thread *thread);

// Time: an interval's stack was there from its beginning on, any other from the sample on; up to where the next one's
//       time begins; or only to its last sample, where that is too far away (slices_gap_ns) or there is none; or to a
//       gap. So it is the area of the slices.
// CPU time, and bytes where they are a metric: how much they grew since the sample before (the first: 0). Else the
// sizes that allocations carry, each as many times as it stands for hits.
// False: there are no more.
bool weights_next(struct weights_walk *walk, const struct trace_sample **sample, struct weights *weights);

const char *weights_unit(unsigned weight); // "samples", "nanoseconds", "bytes"
const char *weights_name(unsigned weight); // "samples", "time", "cpu", "bytes"

#endif
