// SPDX-License-Identifier: Apache-2.0
// How long something took, by the processor's own counter, which is read in a third of the time that the kernel's clock
// takes. It serves where the kernel itself makes its clock of it (so that it is constant, and the same on every
// processor); what a count is worth is measured against that clock, again and again. Where they disagree it serves no
// more.
#ifndef QUT_SAMPLE_CYCLE_CLOCK_H
#define QUT_SAMPLE_CYCLE_CLOCK_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#include "libqut/arch/native.h"

#pragma GCC visibility push(hidden)

enum { SAMPLE_COUNTER_SHIFT = 20 };
extern _Atomic uint32_t sample_counter_ratio; // ns of 2^20 counts; 0: not known (yet), or not to be trusted

// It is measured from now on, if the kernel's clock is made of it.
void sample_counter_begin(bool is_clock);
// CLOCK_MONOTONIC has just been read: now_ns. Now and then the counter is compared with it. Signal-safe.
void sample_counter_compare(uint64_t now_ns);

// What cannot be mistaken for it stands for "not now": where counters are not to be had, and while the ratio is not
// known.
static inline uint64_t sample_counter_begins(void)
{
    if (!atomic_load_explicit(&sample_counter_ratio, memory_order_relaxed))
        return 0;
    uint64_t count = arch_native_counter();
    return count ? count : 1;
}

// ns of a few counts, or UINT64_MAX: there are many, or it stands still no more where it was.
static inline uint64_t sample_counter_few_ns(uint64_t count)
{
    uint32_t ratio = atomic_load_explicit(&sample_counter_ratio, memory_order_relaxed);
    return count >> 32 || !ratio ? UINT64_MAX : count * ratio >> SAMPLE_COUNTER_SHIFT;
}

// ns of many, that began at coarse_ns (CLOCK_MONOTONIC_COARSE) and ended at now_ns. As good as the coarse clock where
// the counter turns out wrong. Signal-safe.
uint64_t sample_counter_many_ns(uint64_t count, uint64_t coarse_ns, uint64_t now_ns);

#pragma GCC visibility pop

#endif
