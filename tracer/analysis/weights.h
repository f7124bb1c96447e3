// SPDX-License-Identifier: Apache-2.0
// What a sample counts for: one, or the time until the next one, ...
//
// Processor time: cpu_account.h.
//
// Allocations and faults: what a thread's counter grew by goes to its next sample of that kind; where it has
// none, to the next sample.
#ifndef TRACER_ANALYSIS_WEIGHTS_H
#define TRACER_ANALYSIS_WEIGHTS_H

#include "tracer/analysis/analysis.h"
#include "tracer/analysis/cpu_account.h"

struct weights {
    uint64_t of[MEASURE_COUNT];
    uint64_t from_ns, to_ns; // when its stack is taken to have been there: of[MEASURE_WALL] is what lies between
};

// Stretches that lie in each other, met in the order of their ends: how much of each was not met before.
struct covered {
    struct {
        uint64_t from_ns, length_ns;
    } stretches[32];
    unsigned count;
};
uint64_t analysis_covered_add(struct covered *covered, uint64_t from_ns, uint64_t to_ns);

// A counter of a thread's, as its samples tell it.
struct counter_walk {
    uint64_t before, carried; // carried: grown since the last sample that counted
    bool has_before;
};

// The samples of one thread, from the first to the last.
struct weights_walk {
    const struct trace *trace;
    const struct trace_thread *thread;
    size_t next, next_gap;
    uint64_t gap_ns;  // analysis_weights_gap_ns: further apart, nothing is known of the time between
    uint64_t from_ns; // where the next one's time begins
    uint64_t last_ns; // of all before: runs of one level lie inside of runs of another
    struct cpu_account cpu;
    struct counter_walk bytes, allocations, faults;
    struct covered blocked;
    bool has_allocations, has_faults; // the thread has samples of that kind
};

void analysis_weights_begin(struct weights_walk *walk, const struct trace *trace, const struct trace_thread *thread);

// Time: an interval's stack was there from its beginning on, any other from the sample on; up to where the next one's
//       time begins; or only to its last sample, where that is too far away (analysis_weights_gap_ns) or there is none;
//       or to a gap. One that did not end lasts until trace_open_until. So it is the area of the slices.
// Bytes and allocations: without the metric, the sizes that allocations carry, each as many times as it stands for
//       hits.
// False: there are no more.
bool analysis_weights_next(struct weights_walk *walk, const struct trace_sample **sample, struct weights *weights);

// How far two samples of a thread may lie apart before nothing is known of the time between: ten times what usually
// lies between two, and no less than 20 ms; 0: any.
uint64_t analysis_weights_gap_ns(const struct trace *trace, const struct trace_thread *thread);

// The time of an interval's beginning, by its duration. False: the sample is no interval's end.
bool analysis_interval_begin(const struct trace *trace, const struct trace_sample *sample, uint64_t *begin_ns);
// Whether its thread was off the processor: it says so, or it is of a kind that waits.
bool analysis_is_blocking(const struct trace_sample *sample);

#endif
