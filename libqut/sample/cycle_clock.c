// SPDX-License-Identifier: Apache-2.0
#include "libqut/sample/cycle_clock.h"

#include "libqut/os/os.h"

enum {
    PRECISION = 1 << 14, // a comparison takes no more than that part of what it compares
    TOLERANCE = 1 << 8,  // the kernel's clock may run faster or slower than it did by less than that
    MOMENT_SHIFT = 20,   // a moment: 2^20 ns, about 1 ms
    FIRST_MOMENTS = 8,
    NEXT_MOMENTS = 1000,
    TRIES = 5,
};
#define BEHIND_NS ((uint64_t)100000000) // the coarse clock may be, where the kernel's ticks are late

_Atomic uint32_t sample_counter_ratio;

// Both clocks at a time.
struct reading {
    uint64_t ns, count;
    uint64_t spread; // ns was read within so many counts from count on
};

static _Atomic uint32_t is_used;
static _Atomic uint32_t is_busy;     // a thread compares
static _Atomic uint32_t last_moment; // when they were compared
static struct reading last;          // then. Of the busy thread

static uint32_t moment_of(uint64_t ns)
{
    return (uint32_t)(ns >> MOMENT_SHIFT);
}

static struct reading read_both(void)
{
    struct reading best = {.spread = UINT64_MAX};
    for (int i = 0; i < TRIES; i++) {
        struct reading now = {.count = arch_native_counter()};
        now.ns = os_now_ns();
        now.spread = arch_native_counter() - now.count;
        if (now.spread < best.spread)
            best = now;
    }
    return best;
}

static void give_up(void)
{
    atomic_store_explicit(&is_used, 0, memory_order_relaxed);
    atomic_store_explicit(&sample_counter_ratio, 0, memory_order_relaxed);
}

void sample_counter_begin(bool is_clock)
{
    if (atomic_exchange_explicit(&is_busy, 1, memory_order_acquire))
        return;
    give_up();
    if (ARCH_NATIVE_HAS_COUNTER && is_clock) {
        last = read_both();
        atomic_store_explicit(&last_moment, moment_of(last.ns), memory_order_relaxed);
        atomic_store_explicit(&is_used, 1, memory_order_relaxed);
    }
    atomic_store_explicit(&is_busy, 0, memory_order_release);
}

// 0: it is none that can be worked with.
static uint32_t ratio_of(uint64_t ns, uint64_t counts)
{
    for (; ns >> (64 - SAMPLE_COUNTER_SHIFT); ns >>= 1)
        counts >>= 1;
    uint64_t ratio = counts ? (ns << SAMPLE_COUNTER_SHIFT) / counts : 0;
    return ratio <= UINT32_MAX ? (uint32_t)ratio : 0;
}

static void compare(void)
{
    struct reading now = read_both();
    uint64_t counts = now.count - last.count;
    if ((int64_t)counts <= 0) {
        give_up();
        return;
    }
    if (now.spread + last.spread > counts / PRECISION)
        return; // interrupted in between: later
    uint32_t ratio = ratio_of(now.ns - last.ns, counts);
    uint32_t before = atomic_load_explicit(&sample_counter_ratio, memory_order_relaxed);
    uint32_t difference = ratio > before ? ratio - before : before - ratio;
    if (!ratio || (before && difference > before / TOLERANCE)) {
        give_up();
        return;
    }
    last = now;
    atomic_store_explicit(&last_moment, moment_of(now.ns), memory_order_relaxed);
    atomic_store_explicit(&sample_counter_ratio, ratio, memory_order_relaxed);
}

void sample_counter_compare(uint64_t now_ns)
{
    if (!atomic_load_explicit(&is_used, memory_order_relaxed))
        return;
    uint32_t passed = moment_of(now_ns) - atomic_load_explicit(&last_moment, memory_order_relaxed);
    bool is_first = !atomic_load_explicit(&sample_counter_ratio, memory_order_relaxed);
    // As a signed number: another thread may have read its clock later, and be done.
    if ((int32_t)passed < (is_first ? FIRST_MOMENTS : NEXT_MOMENTS) ||
        atomic_exchange_explicit(&is_busy, 1, memory_order_acquire))
        return;
    if (atomic_load_explicit(&is_used, memory_order_relaxed))
        compare();
    atomic_store_explicit(&is_busy, 0, memory_order_release);
}

uint64_t sample_counter_many_ns(uint64_t count, uint64_t coarse_ns, uint64_t now_ns)
{
    uint32_t ratio = atomic_load_explicit(&sample_counter_ratio, memory_order_relaxed);
    uint64_t most_ns = now_ns - coarse_ns; // the coarse clock is behind
    uint64_t slack_ns = most_ns / TOLERANCE;
    uint64_t least_ns = most_ns > slack_ns + BEHIND_NS ? most_ns - slack_ns - BEHIND_NS : 0;
    uint64_t high = count >> SAMPLE_COUNTER_SHIFT, low = count & (((uint64_t)1 << SAMPLE_COUNTER_SHIFT) - 1);
    uint64_t ns = high * ratio + (low * ratio >> SAMPLE_COUNTER_SHIFT);
    if (!ratio || (high >> 32 && (int64_t)count > 0)) // weeks
        return most_ns;
    if ((int64_t)count < 0 || ns > most_ns + slack_ns + 1000 || ns < least_ns) {
        give_up();
        return most_ns;
    }
    return ns < most_ns ? ns : most_ns;
}
