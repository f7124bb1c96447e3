// SPDX-License-Identifier: Apache-2.0
#include "tracer/attach/times.h"

// Below 16 each has a bucket of its own; above, the four bits behind the highest one choose.
static unsigned bucket_of(uint64_t duration_ns)
{
    if (duration_ns < ATTACH_TIMES_STEPS)
        return (unsigned)duration_ns;
    unsigned octave = 63u - (unsigned)__builtin_clzll(duration_ns);
    return (octave - 3) * ATTACH_TIMES_STEPS + (unsigned)(duration_ns >> (octave - 4) & (ATTACH_TIMES_STEPS - 1));
}

// The last one in a bucket.
static uint64_t highest_of(unsigned bucket)
{
    if (bucket < ATTACH_TIMES_STEPS)
        return bucket;
    unsigned octave = bucket / ATTACH_TIMES_STEPS + 3;
    uint64_t step = (uint64_t)1 << (octave - 4);
    return ((uint64_t)(ATTACH_TIMES_STEPS + bucket % ATTACH_TIMES_STEPS) + 1) * step - 1;
}

void attach_times_add(struct attach_times *times, uint64_t duration_ns)
{
    times->count++;
    times->all_ns += duration_ns;
    times->buckets[bucket_of(duration_ns)]++;
    if (duration_ns > times->longest_ns)
        times->longest_ns = duration_ns;
}

uint64_t attach_times_at(const struct attach_times *times, unsigned thousandths)
{
    uint64_t wanted = (times->count * thousandths + 999) / 1000, seen = 0;
    for (unsigned i = 0; i < ATTACH_TIMES_COUNT && wanted; i++) {
        seen += times->buckets[i];
        if (seen >= wanted)
            return highest_of(i) < times->longest_ns ? highest_of(i) : times->longest_ns;
    }
    return 0;
}
