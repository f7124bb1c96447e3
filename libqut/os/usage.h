// SPDX-License-Identifier: Apache-2.0
// What the kernel is, what it counts for the calling thread, and the clock that costs least. Signal-safe, but for what
// says otherwise.
#ifndef QUT_OS_USAGE_H
#define QUT_OS_USAGE_H

#include <stdbool.h>
#include <stdint.h>
#include <time.h>

#pragma GCC visibility push(hidden)

struct os_usage {
    uint64_t minor_faults, major_faults, voluntary_switches, involuntary_switches;
};
// One system call. False: it is forbidden.
bool os_thread_usage(struct os_usage *usage);

// CLOCK_MONOTONIC as of the kernel's last tick, some milliseconds behind. No system call where there is a vDSO.
static inline uint64_t os_coarse_ns(void)
{
    struct timespec now = {0, 0};
    clock_gettime(CLOCK_MONOTONIC_COARSE, &now);
    return (uint64_t)now.tv_sec * 1000000000u + (uint64_t)now.tv_nsec;
}
uint64_t os_coarse_step_ns(void); // how often that clock changes: the period of the kernel's tick
// Whether the kernel's clock is the one that it calls so; false where it does not tell. Not signal-safe.
bool os_clock_is(const char *name);
bool os_kernel_is_from(unsigned major, unsigned minor); // that version or a later one. Not signal-safe

#pragma GCC visibility pop

#endif
