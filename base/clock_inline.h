// SPDX-License-Identifier: Apache-2.0
#ifndef BASE_CLOCK_INLINE_H
#define BASE_CLOCK_INLINE_H

#include <stdint.h>
#include <time.h>

static inline uint64_t base_clock_ns(clockid_t clock)
{
    struct timespec now;
    clock_gettime(clock, &now);
    return (uint64_t)now.tv_sec * 1000000000u + (uint64_t)now.tv_nsec;
}

// Since some time in the past, and never backwards: for how long things take.
static inline uint64_t base_clock_now_ns(void)
{
    return base_clock_ns(CLOCK_MONOTONIC);
}

#endif
