// SPDX-License-Identifier: Apache-2.0
// What makes a thread tick. An interrupt of perf's clock took a virtual machine 35 to 70 us, a tick of a timer of
// processor time nothing that could be measured: the kernel looks at it in its own tick, which is why it is no finer
// than that. So where no finer ticks are asked for, a timer it is, where it interrupts no call; and else for threads
// that switch often. At each switch the kernel stops perf's clock and sets it anew: in a
// virtual machine a switch cost 2.6 us without one, 4.9 with one of 10 ms, 12.6 with one of 1 ms (which is earlier than
// the kernel's own tick, so that the hardware's timer is set as well, twice). With a timer it costs nothing more.
#include "libqut/os/usage.h"
#include "libqut/sample/inside.h"

enum { TICKS_BETWEEN_LOOKS = 4, LOOK_NS = 4000000 };
// Processor time between two times that it waits, which is its own way: that others take its processor is not, and
// comes and goes with them. In between it stays what it is.
enum { OFTEN_NS = 1000000, SELDOM_NS = 2000000 };

static bool becomes_so(const struct sample_ticker *ticker, uint64_t switches, uint64_t cpu_ns)
{
    if (ticker->is_by_timer)
        return switches * SELDOM_NS > cpu_ns;
    return switches * OFTEN_NS > cpu_ns;
}

static bool may_change(void)
{
    return sample_sampler.may_change && !atomic_load_explicit(&sample_sampler.is_settled, memory_order_relaxed) &&
           atomic_load_explicit(&sample_sampler.trigger, memory_order_relaxed) == QUT_TRIGGER_TASK_CLOCK;
}

static bool is_timer_fine_enough(uint64_t period_ns)
{
    uint64_t step_ns = os_coarse_step_ns();
    return step_ns && period_ns >= step_ns;
}

// The kernel's tick meets a thread that shares its processor by chance: of 100 Hz 88 were reached where it had two
// thirds of one. Each sample stands for what went by, so shares are right; but fewer are had than were asked for.
static bool is_uneven(const struct sample_ticker *ticker)
{
    enum { LEAST = 20, ONE_IN = 20 };
    uint64_t late = atomic_load_explicit(&ticker->counts.late, memory_order_relaxed) - ticker->rested_count;
    uint64_t all = late + atomic_load_explicit(&ticker->counts.taken, memory_order_relaxed);
    return all >= LEAST && late * ONE_IN > all;
}

void sample_switches_begin(struct sample_ticker *ticker, uint64_t period_ns)
{
    if (may_change() && is_timer_fine_enough(period_ns))
        sample_ticker_set_by_timer(ticker, true);
}

void sample_switches_look(struct sample_ticker *ticker)
{
    struct os_usage usage;
    if (!may_change() || ticker->tick_count % TICKS_BETWEEN_LOOKS != 0)
        return;
    if (ticker->is_by_timer && is_timer_fine_enough(ticker->asked_ns) && !ticker->is_uneven) {
        ticker->is_uneven = is_uneven(ticker);
        if (!ticker->is_uneven)
            return;
    }
    if (!os_thread_usage(&usage))
        return;
    uint64_t switches = usage.voluntary_switches, cpu_ns = os_thread_cpu_ns();
    // However fast ticks are: within less, a wait more or less would decide.
    if (ticker->tick_count != 0 && cpu_ns - ticker->cpu_ns_seen < LOOK_NS)
        return;
    bool becomes = (is_timer_fine_enough(ticker->asked_ns) && !ticker->is_uneven) ||
                   becomes_so(ticker, switches - ticker->switches_seen, cpu_ns - ticker->cpu_ns_seen);
    ticker->switches_seen = switches;
    ticker->cpu_ns_seen = cpu_ns;
    // How a thread begins, and is given its ticks, does not say how it goes on.
    if (ticker->tick_count == 0 || becomes == ticker->is_by_timer)
        return;
    sample_ticker_set_by_timer(ticker, becomes);
    sample_ticker_rearm(ticker, ticker->asked_ns);
}
