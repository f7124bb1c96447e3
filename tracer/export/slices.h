// SPDX-License-Identifier: Apache-2.0
// Samples of one thread as slices: when functions were entered and left, as far as samples can tell. What two samples
// that follow each other have in common is taken to have gone on between them. That makes one long execution of two
// equal short ones; a mark between them cuts: every slice ends there, and begins again.
//
// Functions are compared, not places in them: a function that calls from another line is still the same execution of
// it; what it calls from there is another one. The stack of a sample that ends an interval (EXTRA_DURATION_NS) was
// there from the interval's beginning on (its EXTRA_BEGIN_NODE, where it has one), but not before the sample before it.
#ifndef TRACER_EXPORT_SLICES_H
#define TRACER_EXPORT_SLICES_H

#include "tracer/analysis/weights.h" // analysis_weights_gap_ns, for slice_options
#include "tracer/names/names.h"
#include "tracer/trace/trace_data.h"

struct slice_events {
    void *context;
    // Of a function; `node` is the frame in which it was entered, `index` the (inlined) function in it. `time_ns` never
    // goes back. Return false to stop.
    bool (*enter)(void *context, uint64_t time_ns, uint32_t node, size_t index);
    bool (*leave)(void *context, uint64_t time_ns, uint32_t node, size_t index);
    // Between them, in the order of their time. May be NULL.
    bool (*sample)(void *context, const struct trace_sample *sample);
    bool (*mark)(void *context, const struct trace_mark *mark);
    bool (*gap)(void *context, const struct trace_gap *gap);
};

struct slice_options {
    uint64_t gap_ns; // where no sample was taken for so long the stack is taken to be unknown: all slices end with the
                     // last sample. 0: never
};

// Gaps and marks of kind BEGIN and END cut. False: an event said so.
bool export_slices_of_thread(const struct trace *trace, const struct names *names, const struct trace_thread *thread,
                             const struct slice_options *options, const struct slice_events *events);

#endif
