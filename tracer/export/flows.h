// SPDX-License-Identifier: Apache-2.0
// Samples that carry the same number (EXTRA_FLOW), a cause and its effects, in the order of their time.
#ifndef TRACER_EXPORT_FLOWS_H
#define TRACER_EXPORT_FLOWS_H

#include "tracer/trace/trace_data.h"

struct flow {
    uint64_t id, time_ns;
    const struct trace_sample *sample;
};

struct flows {
    struct flow *items; // sorted by id, then time
    size_t count;
};

enum flow_step {
    FLOW_NONE, // the sample has none, or is the only one with its number
    FLOW_START,
    FLOW_STEP,
    FLOW_END,
};

int export_flows_make(struct flows *flows, const struct trace *trace); // -1: no memory
enum flow_step export_flows_find(const struct flows *flows, const struct trace *trace,
                                 const struct trace_sample *sample, uint64_t *id);
void export_flows_free(struct flows *flows);

#endif
