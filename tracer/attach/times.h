// SPDX-License-Identifier: Apache-2.0
// Many durations, by size: each octave in sixteen steps, so that what comes out is at most 6 % too large.
#ifndef TRACER_ATTACH_TIMES_H
#define TRACER_ATTACH_TIMES_H

#include <stdint.h>

enum { ATTACH_TIMES_STEPS = 16, ATTACH_TIMES_COUNT = 64 * ATTACH_TIMES_STEPS };

struct attach_times {
    uint64_t count, all_ns, longest_ns;
    uint32_t buckets[ATTACH_TIMES_COUNT];
};

void attach_times_add(struct attach_times *times, uint64_t duration_ns);
// The duration that so many of a thousand did not exceed; 0: there are none.
uint64_t attach_times_at(const struct attach_times *times, unsigned thousandths);

#endif
