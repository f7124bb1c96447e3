// SPDX-License-Identifier: Apache-2.0
// A rate that this system cannot hold is lowered to what it can. The kernel lets perf's events fire no oftener than
// perf_event_max_sample_rate, which it lowers by itself when interrupts take long: an event that has fired so often
// within one tick of the kernel's is silent until the next. So faster ticks give no more samples, only uneven ones.
// Seen with a limit of 1000: 1546 of 15010 ticks at 10 kHz.
#include "libqut/os/usage.h"
#include "libqut/sample/inside.h"

enum {
    LOOK_NS = 250000000, // of processor time
    NS_PER_S = 1000000000,
};
static const double held = 0.8; // of what is due: that many come by chance alone, in so long a time

// The kernel counts in its own tick, and stops an event with the last that it lets have.
static uint64_t shortest_ns(void)
{
    uint64_t events = os_events_a_second(), step_ns = os_coarse_step_ns();
    if (!events || events >= NS_PER_S || !step_ns || step_ns > NS_PER_S)
        return 0;
    uint64_t in_step = (events * step_ns + NS_PER_S - 1) / NS_PER_S;
    return step_ns / (in_step > 1 ? in_step - 1 : 1);
}

void sample_reach_begin(void)
{
    atomic_store_explicit(&sample_sampler.period_least_ns, shortest_ns(), memory_order_relaxed);
}

void sample_reach_restart(struct sample_ticker *ticker)
{
    ticker->reach_times = ticker->times;
    ticker->reach_came = ticker->rested_count = 0;
    ticker->was_short = false;
}

uint64_t sample_reach_period(uint64_t period_ns)
{
    uint64_t least_ns = atomic_load_explicit(&sample_sampler.period_least_ns, memory_order_relaxed);
    return period_ns && period_ns < least_ns ? least_ns : period_ns;
}

// An event and the kernel's tick are of one clock. In step they would meet each time in the same place: in a thread
// that computes, every tick of the kernel's in our handler, or none. Seen: 0.4 and 35 % of a program for the same
// handler.
uint64_t sample_out_of_step(uint64_t period_ns)
{
    return period_ns + period_ns / 251;
}

static void raise_least(uint64_t period_ns)
{
    uint64_t before = atomic_load_explicit(&sample_sampler.period_least_ns, memory_order_relaxed);
    while (before < period_ns &&
           !atomic_compare_exchange_weak_explicit(&sample_sampler.period_least_ns, &before, period_ns,
                                                  memory_order_relaxed, memory_order_relaxed))
        ;
}

static uint64_t events_come(const struct sample_ticker *ticker)
{
    return atomic_load_explicit(&ticker->counts.taken, memory_order_relaxed) -
           atomic_load_explicit(&ticker->counts.beside, memory_order_relaxed) + ticker->rested_count;
}

void sample_reach_look(struct sample_ticker *ticker)
{
    if (!sample_ticker_has_event(ticker) || ticker->timer < 0)
        return; // the share of user mode is not known
    if (atomic_load_explicit(&sample_sampler.is_settled, memory_order_relaxed))
        return;
    const struct os_task_times *now = &ticker->seen_times, *before = &ticker->reach_times;
    uint64_t cpu_ns = now->cpu_ns - before->cpu_ns;
    if (now->cpu_ns < before->cpu_ns || cpu_ns < LOOK_NS)
        return;
    uint64_t all_came = events_come(ticker), came = all_came - ticker->reach_came;
    uint64_t all_ns = now->all_ns - before->all_ns, user_ns = now->user_ns - before->user_ns;
    ticker->reach_times = *now;
    ticker->reach_came = all_came;
    if (!all_ns || user_ns > all_ns)
        return;
    double due_ns = (double)cpu_ns * ((double)user_ns / (double)all_ns);
    double due = due_ns / (double)ticker->period_ns;
    bool is_short = due >= 16 && (double)came < held * due;
    if (is_short && ticker->was_short && came)
        raise_least((uint64_t)(due_ns / (double)came));
    ticker->was_short = is_short;
    if (sample_reach_period(ticker->asked_ns) > ticker->period_ns)
        sample_ticker_rearm(ticker, ticker->asked_ns);
}
