// SPDX-License-Identifier: Apache-2.0
// Of exact calls, those that a selection of the trace is about: of its threads, begun in its time.
#ifndef TRACER_ANALYSIS_CALL_PART_H
#define TRACER_ANALYSIS_CALL_PART_H

#include "tracer/analysis/selection.h"
#include "tracer/call_times/sums.h"

struct analysis_call_part {
    struct call_times_part part;
    bool *threads;
};

// False: no memory.
bool analysis_call_part_make(struct analysis_call_part *to, const struct selection *selection,
                             const struct call_events *calls);
void analysis_call_part_free(struct analysis_call_part *part);

#endif
