// SPDX-License-Identifier: Apache-2.0
// Exact calls of a selection, lane by lane: what all timelines of exports are made of.
#ifndef TRACER_EXPORT_CALL_LANES_H
#define TRACER_EXPORT_CALL_LANES_H

#include "tracer/analysis/selection.h"
#include "tracer/call_times/lanes.h"
#include "tracer/names/names.h"

enum { CALL_LANE_NAME_BYTES = 80 };

struct call_lane_events {
    // A lane begins: `number` counts all of the trace's; the name is "worker (calls)".
    bool (*lane)(void *context, const struct call_events *calls, const struct call_events_thread *thread,
                 uint32_t number, const char *name);
    // Times ascend; what ends has begun and ended nowhere else, and ends behind what is within it.
    bool (*begin)(void *context, uint64_t time_ns, const struct name *name);
    bool (*end)(void *context, uint64_t time_ns, const struct name *name, const char *how); // NULL: it returned
    void *context;
};

// False: no memory, or one of them gave up.
bool export_call_lanes(const struct selection *selection, const struct names *names,
                       const struct call_lane_events *events);

#endif
