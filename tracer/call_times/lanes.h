// SPDX-License-Identifier: Apache-2.0
// Calls as slices on lanes: what timelines show. On a lane slices lie in each other or one behind the other. A thread
// has one lane, and more where calls of several stacks (coroutines) were open at once.
#ifndef TRACER_CALL_TIMES_LANES_H
#define TRACER_CALL_TIMES_LANES_H

#include "tracer/call_times/sums.h"

struct call_times_slice {
    uint64_t begin_ns, end_ns;
    uint64_t number;
    uint32_t function;
    uint32_t depth; // grows by at least one from a slice to one within
    uint32_t stack;
    uint32_t lane;
    uint8_t how; // enum call_times_how
};

struct call_times_lane {
    uint32_t thread; // index in the part's threads
    uint32_t number; // of the thread's lanes: 0, 1, ...
    size_t first, count;
};

struct call_times_lanes {
    struct {
        BASE_VECTOR(struct call_times_slice);
    } slices; // by lane and time; what is within stands behind
    struct {
        BASE_VECTOR(struct call_times_lane);
    } lanes;         // by thread
    uint64_t hidden; // calls that were wanted and are none of them
};

// Of calls that are wanted those that took least_ns. More than `most` are too many: then the longest ones (by powers of
// two of their time), as many as fit. 0; or -1, *error filled: no memory.
int call_times_lanes_make(struct call_times_lanes *lanes, const struct call_events *calls,
                          const struct call_times_part *part, size_t most, struct base_error *error);
void call_times_lanes_free(struct call_times_lanes *lanes);

// Both ends of a lane's slices in the order of time, as they lie in each other. Ends may be moved by nothing: an inner
// slice has ended when an outer one does. False from either: no more is wanted.
struct call_times_slice_events {
    bool (*begin)(void *context, const struct call_times_slice *slice);
    bool (*end)(void *context, const struct call_times_slice *slice);
    void *context;
};
bool call_times_lane_replay(const struct call_times_lanes *lanes, const struct call_times_lane *lane,
                            const struct call_times_slice_events *events, bool *no_memory);

#endif
