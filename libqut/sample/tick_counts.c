// SPDX-License-Identifier: Apache-2.0
// What became of ticks. `taken` and `late` are counted one by one. What is missing then of what the clock says was due
// fell into the kernel, or is lost: the kernel's own split of a thread's time says how many can have fallen there. That
// split is sampled, by one look at each of the kernel's ticks: where k of n looks met a system call, up to
// k + 1 + 2 sqrt(k + 1) of n + 1 ticks are taken to have fallen into one (two standard deviations). So a few lost ticks
// of a thread that works in the kernel much may count as `kernel`, those of one that does not are lost.
//
// A timer of processor time misses nothing in the kernel, but is looked at only by those of the kernel's ticks that
// meet the thread: what it had not sent by the end is late. One that runs for moments is met seldom, by chance: with a
// mean of one step of processor time between two, so that more than 8 are lost (e^-8).
#include <assert.h>
#include <string.h>

#include "libqut/os/usage.h"
#include "libqut/sample/inside.h"

static_assert(sizeof(struct sample_tally) == sizeof((struct sample_sampler *)0)->ended, "summed by index");

static uint64_t root(uint64_t square)
{
    uint64_t low = 0, high = (uint64_t)1 << 31;
    while (low < high) {
        uint64_t middle = (low + high + 1) / 2;
        if (middle * middle <= square)
            low = middle;
        else
            high = middle - 1;
    }
    return low;
}

static uint64_t step_ns(void) // of the kernel's ticks
{
    enum { USUAL_STEP_NS = 4000000 };
    uint64_t told_ns = os_coarse_step_ns();
    return told_ns ? told_ns : USUAL_STEP_NS;
}

// How many of `due` can have met the kernel.
static uint64_t kernel_most(uint64_t due, uint64_t user_ns, uint64_t all_ns)
{
    uint64_t step = step_ns(), looks = all_ns / step, met = all_ns > user_ns ? (all_ns - user_ns) / step : 0;
    return due * (met + 1 + 2 * root(met + 1)) / (looks + 1) + 1;
}

// How many ticks a timer may not have sent yet.
static uint64_t unsent_most(uint64_t period_ns)
{
    enum { STEPS = 8 };
    return STEPS * step_ns() / period_ns + 1;
}

static uint64_t since(uint64_t now, uint64_t before)
{
    return now > before ? now - before : 0;
}

void sample_tally_ticker(const struct sample_ticker *ticker, uint32_t tid, uint64_t fired, struct sample_tally *tally)
{
    uint32_t trigger = atomic_load_explicit(&sample_sampler.trigger, memory_order_relaxed);
    uint64_t taken = atomic_load_explicit(&ticker->counts.taken, memory_order_relaxed);
    uint64_t late = atomic_load_explicit(&ticker->counts.late, memory_order_relaxed);
    uint64_t period_ns = ticker->period_ns, due = 0, most = 0, unsent = 0;
    struct os_task_times times;
    if (trigger == QUT_TRIGGER_WALL) {
        due = period_ns ? since(os_now_ns() - ticker->armed_ns, ticker->guarded_ns) / period_ns : 0;
    } else if (period_ns && os_task_times(tid, &times)) {
        due = since(times.cpu_ns, ticker->times.cpu_ns) / period_ns;
        if (ticker->timer >= 0 && !sample_ticker_has_event(ticker))
            unsent = unsent_most(period_ns);
        else
            most = kernel_most(due, since(times.user_ns, ticker->times.user_ns),
                               since(times.all_ns, ticker->times.all_ns));
    }
    // An event's records that say that it was stopped for a while count as if it had fired: no more than is missing.
    uint64_t by_event = since(taken, atomic_load_explicit(&ticker->counts.beside, memory_order_relaxed));
    uint64_t behind = since(due, taken + late), merged = since(fired, by_event);
    late += trigger != QUT_TRIGGER_WALL && period_ns && merged > behind ? behind : merged;
    behind = since(due, taken + late);
    late += behind < unsent ? behind : unsent;
    uint64_t missing = since(due, taken + late), kernel = missing < most ? missing : most;
    uint64_t all = taken + late + missing;
    uint64_t asked_ns = *(const volatile uint64_t *)&ticker->asked_ns; // once: its place may be given to another thread
    bool is_slower = period_ns && asked_ns && asked_ns < period_ns;
    *tally = (struct sample_tally){.due = all,
                                   .taken = taken,
                                   .late = late,
                                   .kernel = kernel,
                                   .lost = missing - kernel,
                                   .asked = is_slower ? all * period_ns / asked_ns : all};
}

// Word by word, by index.
static void add(uint64_t sums[SAMPLE_TALLY_WORDS], const struct sample_tally *tally)
{
    const uint64_t values[SAMPLE_TALLY_WORDS] = {tally->due,    tally->taken, tally->late,
                                                 tally->kernel, tally->lost,  tally->asked};
    for (int i = 0; i < SAMPLE_TALLY_WORDS; i++)
        sums[i] += values[i];
}

void sample_tally_ended(const struct sample_tally *tally)
{
    uint64_t sums[SAMPLE_TALLY_WORDS] = {0};
    add(sums, tally);
    for (int i = 0; i < SAMPLE_TALLY_WORDS; i++)
        atomic_fetch_add_explicit(&sample_sampler.ended[i], sums[i], memory_order_relaxed);
}

static void add_live(uint64_t sums[SAMPLE_TALLY_WORDS], const struct sample_ticker *tickers)
{
    uint32_t count = atomic_load_explicit(&sample_sampler.ticker_count, memory_order_acquire);
    for (uint32_t i = 0; i < count; i++) {
        struct sample_tally tally;
        uint32_t tid = atomic_load_explicit(&tickers[i].tid, memory_order_acquire);
        if (!tid)
            continue;
        sample_tally_ticker(&tickers[i], tid, atomic_load_explicit(&tickers[i].counts.fired, memory_order_relaxed),
                            &tally);
        if (atomic_load_explicit(&tickers[i].tid, memory_order_acquire) == tid)
            add(sums, &tally);
    }
}

void qut_sampling_get_counters(struct qut_sampling_counters *counters, size_t size)
{
    uint64_t sums[SAMPLE_TALLY_WORDS];
    for (int i = 0; i < SAMPLE_TALLY_WORDS; i++)
        sums[i] = atomic_load_explicit(&sample_sampler.ended[i], memory_order_relaxed);
    const struct sample_ticker *tickers = sample_tickers_enter();
    if (tickers)
        add_live(sums, tickers);
    sample_tickers_leave();
    struct qut_sampling_counters now = {
        .due = sums[0],
        .taken = sums[1],
        .late = sums[2],
        .kernel = sums[3],
        .lost = sums[4],
        .asked = sums[5],
        .strays = atomic_load_explicit(&sample_sampler.strays, memory_order_relaxed),
        .threads = atomic_load_explicit(&sample_sampler.threads, memory_order_relaxed),
        .threads_by_timer = atomic_load_explicit(&sample_sampler.by_timer_count, memory_order_relaxed),
        .threads_failed = atomic_load_explicit(&sample_sampler.threads_failed, memory_order_relaxed),
        .threads_without_kernel = atomic_load_explicit(&sample_sampler.threads_without_kernel, memory_order_relaxed),
        .period_least_ns = atomic_load_explicit(&sample_sampler.period_least_ns, memory_order_relaxed),
        .eintr_seen = atomic_load_explicit(&sample_sampler.eintr_seen, memory_order_relaxed),
    };
    memset(counters, 0, size);
    memcpy(counters, &now, size < sizeof now ? size : sizeof now);
}
