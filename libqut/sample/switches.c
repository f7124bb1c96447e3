// SPDX-License-Identifier: Apache-2.0
// What makes a thread tick that switches often. At each switch the kernel stops perf's clock and sets it anew: in a
// virtual machine a switch cost 2.6 us without one, 4.9 with one of 10 ms, 12.6 with one of 1 ms (which is earlier than
// the kernel's own tick, so that the hardware's timer is set as well, twice). A timer of processor time costs nothing
// there: the kernel looks at it in its own tick, which is why it is no finer than that. So who switches often gets such
// a timer, where it interrupts no call.
#include "libqut/os/usage.h"
#include "libqut/sample/sampling.h"

enum { TICKS_BETWEEN_LOOKS = 8 };
// Processor time between two times that it waits, which is its own way: that others take its processor is not, and
// comes and goes with them. In between it stays what it is.
enum { OFTEN_NS = 1000000, SELDOM_NS = 2000000 };

static bool becomes(const struct qut_ticker *ticker, uint64_t switches, uint64_t cpu_ns)
{
    if (ticker->switches_often)
        return switches * SELDOM_NS > cpu_ns;
    return switches * OFTEN_NS > cpu_ns;
}

static void change(struct qut_ticker *ticker)
{
    if (ticker->switches_often) {
        qut_switches_forget(ticker);
    } else {
        ticker->switches_often = true;
        atomic_fetch_add_explicit(&qut_sampler.switching_count, 1, memory_order_relaxed);
    }
    qut_ticker_rearm(ticker, ticker->period_ns);
}

void qut_switches_look(struct qut_ticker *ticker)
{
    struct qut_os_usage usage;
    if (!qut_sampler.may_use_timers || !qut_sampler.timers_wait || ticker->tick_count % TICKS_BETWEEN_LOOKS != 0 ||
        !qut_os_thread_usage(&usage))
        return;
    uint64_t switches = usage.voluntary_switches, cpu_ns = qut_os_thread_cpu_ns();
    bool often = becomes(ticker, switches - ticker->switches_seen, cpu_ns - ticker->cpu_ns_seen);
    // How a thread begins, and is given its ticks, does not say how it goes on.
    often = often && ticker->tick_count;
    ticker->switches_seen = switches;
    ticker->cpu_ns_seen = cpu_ns;
    if (often != ticker->switches_often)
        change(ticker);
}

void qut_switches_forget(struct qut_ticker *ticker)
{
    atomic_fetch_sub_explicit(&qut_sampler.switching_count, ticker->switches_often, memory_order_relaxed);
    ticker->switches_often = false;
}
