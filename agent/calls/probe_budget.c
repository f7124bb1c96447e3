// SPDX-License-Identifier: Apache-2.0
// Whether probes take more of this process's processor time than they may: looked at by the agent's thread, which is
// part of no call. What a run takes is timed for some of them (probe.c); the way there and back is not within that.
#include <time.h>

#include "agent/calls/calls.h"
#include "agent/calls/inside.h"

enum { STUB_NS = 10 };                           // to a run and back: half of what a pair without programs takes
static const uint64_t window_ns = 200 * 1000000; // of processor time: less than that says little

static struct {
    uint64_t cpu_ns;
    struct calls_probe_spent spent;
} looked; // last time

static uint64_t cpu_ns(void)
{
    struct timespec now;
    return clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &now) == 0
               ? (uint64_t)now.tv_sec * 1000000000 + (uint64_t)now.tv_nsec
               : 0;
}

static struct calls_probe_spent spent_now(void)
{
    return (struct calls_probe_spent){.runs = __atomic_load_n(&calls_probe_spent.runs, __ATOMIC_RELAXED),
                                      .ticks = __atomic_load_n(&calls_probe_spent.ticks, __ATOMIC_RELAXED)};
}

void calls_probe_budget_begin(void)
{
    looked.cpu_ns = cpu_ns();
    looked.spent = spent_now();
}

// The first process that is over it says so; which other ones are does not matter any more.
static void switch_off(struct qut_probe_live *live, uint64_t probes_ns, uint64_t all_ns)
{
    qut_calls_u64 not = QUT_PROBE_LIVE_OVER_NOT;
    if (!__atomic_compare_exchange_n(&live->over, &not, QUT_PROBE_LIVE_OVER_BEGUN, false, __ATOMIC_RELAXED,
                                     __ATOMIC_RELAXED))
        return;
    __atomic_store_n(&live->over_pid, calls_header ? calls_header->pid : 0, __ATOMIC_RELAXED);
    __atomic_store_n(&live->over_probes_ns, probes_ns, __ATOMIC_RELAXED);
    __atomic_store_n(&live->over_cpu_ns, all_ns, __ATOMIC_RELAXED);
    __atomic_store_n(&live->over, QUT_PROBE_LIVE_OVER, __ATOMIC_RELEASE);
}

void calls_probe_look(void)
{
    const struct calls_probe *probe = __atomic_load_n(&calls_probe, __ATOMIC_ACQUIRE);
    if (!probe || !probe->budget_permille)
        return;
    const uint64_t now_ns = cpu_ns(), all_ns = now_ns - looked.cpu_ns;
    if (now_ns < looked.cpu_ns || all_ns < window_ns)
        return;
    const struct calls_probe_spent spent = spent_now();
    const uint64_t runs = (spent.runs - looked.spent.runs) << CALLS_PROBE_TIMED_LOG2;
    const uint64_t ticks = (spent.ticks - looked.spent.ticks) << CALLS_PROBE_TIMED_LOG2;
    const uint64_t drawn_ns = (uint64_t)(((unsigned __int128)ticks * probe->rate) >> 32) + runs * STUB_NS;
    const uint64_t probes_ns = drawn_ns < all_ns ? drawn_ns : all_ns; // what is drawn by lot may be more than there was
    looked.cpu_ns = now_ns;
    looked.spent = spent;
    if ((unsigned __int128)probes_ns * 1000 > (unsigned __int128)all_ns * probe->budget_permille)
        switch_off(probe->live, probes_ns, all_ns);
}
