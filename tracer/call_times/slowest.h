// SPDX-License-Identifier: Apache-2.0
// A function's slowest calls, and where their time went.
#ifndef TRACER_CALL_TIMES_SLOWEST_H
#define TRACER_CALL_TIMES_SLOWEST_H

#include "tracer/call_times/sums.h"

struct call_times_slow {
    uint64_t number; // of the call
    uint64_t begin_ns, end_ns;
    uint32_t thread;
};

struct call_times_within {
    uint32_t function;
    uint64_t calls, self_ns;
};

struct call_times_slowest {
    uint64_t of;       // calls of the function whose end is known
    uint64_t least_ns; // that one of the slowest took
    uint64_t total_ns; // of them; one within another is not added again
    struct {
        BASE_VECTOR(struct call_times_slow);
    } calls; // by number
    struct {
        BASE_VECTOR(struct call_times_within);
    } within; // the function itself, and traced ones that these calls led to; the most time first
};

// The slowest `share` (0 to 1) of a function's calls that are wanted, at least one; equally slow ones are among them.
// 0; or -1, *error filled: no memory.
int call_times_slowest_find(struct call_times_slowest *slowest, const struct call_events *calls,
                            const struct call_times_part *part, const bool *functions, double share,
                            struct base_error *error);
void call_times_slowest_free(struct call_times_slowest *slowest);

#endif
