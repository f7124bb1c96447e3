// SPDX-License-Identifier: Apache-2.0
// Start and stop; and what a child gets.
#include <errno.h>
#include <signal.h>
#include <string.h>

#include <qut/local.h>

#include "libqut/host/host.h"
#include "libqut/os/process.h"
#include "libqut/runtime/walking_thread.h"
#include "libqut/sample/inside.h"
#include "libqut/trace/feed_sample.h"

enum { USUAL_NS = 10000000 };

// ---- options

static bool is_period(uint64_t period_ns)
{
    return period_ns == 0 || (period_ns >= SAMPLE_PERIOD_LEAST_NS && period_ns <= INT64_MAX);
}

static bool is_valid(const struct qut_sampling_options *options)
{
    if (!options || options->size != sizeof *options || options->trigger > QUT_TRIGGER_NONE ||
        (options->flags & ~(uint32_t)QUT_SAMPLING_GUARDED) || options->group_count > QUT_SAMPLING_GROUPS_MAX ||
        (options->group_count && !options->groups) || !is_period(options->period_ns) ||
        options->fault_period > INT64_MAX)
        return false;
    for (size_t i = 0; i < sizeof options->zero / sizeof *options->zero; i++)
        if (options->zero[i])
            return false;
    for (uint32_t i = 0; i < options->group_count; i++) {
        const struct qut_sampling_group *group = &options->groups[i];
        if (!is_period(group->period_ns) || (group->pattern && strlen(group->pattern) >= SAMPLE_PATTERN_BYTES))
            return false;
    }
    return true;
}

static void copy_options(const struct qut_sampling_options *options)
{
    struct sample_sampler *sampler = &sample_sampler;
    sampler->period_ns = options->period_ns ? options->period_ns : USUAL_NS;
    sampler->sync_interval_ns = options->sync_interval_ns ? options->sync_interval_ns : USUAL_NS;
    sampler->fault_period = options->fault_period;
    atomic_store_explicit(&sampler->is_settled, false, memory_order_relaxed);
    sampler->timers_wait = os_cpu_timers_wait();
    sample_reach_begin();
    sampler->may_use_timers = options->trigger == QUT_TRIGGER_BEST;
    sampler->may_change = sampler->may_use_timers && sampler->timers_wait && (options->flags & QUT_SAMPLING_GUARDED);
    sampler->group_count = options->group_count;
    for (uint32_t i = 0; i < options->group_count; i++) {
        struct sample_pace_group *group = &sampler->groups[i];
        memset(group, 0, sizeof *group);
        group->is_main_thread = !options->groups[i].pattern;
        group->period_ns = options->groups[i].period_ns;
        if (options->groups[i].pattern)
            strncpy(group->pattern, options->groups[i].pattern, sizeof group->pattern - 1);
    }
}

// ---- start

static void clear_counts(void)
{
    for (int i = 0; i < SAMPLE_TALLY_WORDS; i++)
        atomic_store_explicit(&sample_sampler.ended[i], 0, memory_order_relaxed);
    atomic_store_explicit(&sample_sampler.strays, 0, memory_order_relaxed);
    atomic_store_explicit(&sample_sampler.threads, 0, memory_order_relaxed);
    atomic_store_explicit(&sample_sampler.threads_failed, 0, memory_order_relaxed);
    atomic_store_explicit(&sample_sampler.threads_without_kernel, 0, memory_order_relaxed);
    atomic_store_explicit(&sample_sampler.eintr_seen, 0, memory_order_relaxed);
}

// 0 or -errno: why the first of them cannot be had.
static int choose_trigger(uint32_t wanted, int signal_number, uint32_t *trigger)
{
    *trigger = wanted == QUT_TRIGGER_BEST ? QUT_TRIGGER_TASK_CLOCK : wanted;
    int result = sample_trigger_try(*trigger, signal_number);
    if (result == 0 || !sample_sampler.may_use_timers)
        return result;
    *trigger = QUT_TRIGGER_CPU_TIMER;
    return sample_trigger_try(*trigger, signal_number) == 0 ? 0 : result;
}

// The signal that the kernel sends by itself costs half as much. A breakpoint of the program's still does what it did.
static bool can_trap(uint32_t wanted)
{
    return (wanted == QUT_TRIGGER_BEST || wanted == QUT_TRIGGER_TASK_CLOCK) && os_traps_wait() &&
           os_tick_signal_is_free(SIGTRAP) && sample_trigger_try(QUT_TRIGGER_TASK_CLOCK, SIGTRAP) == 0;
}

static bool keeps_trap;
void sampling_keep_trap(void)
{
    keeps_trap = true;
}

// With the signal taken: places, and the calling thread's ticks.
static int begin_ticks(uint32_t trigger)
{
    int result = sample_tickers_create();
    if (result != 0)
        return result;
    atomic_store_explicit(&sample_sampler.trigger, trigger, memory_order_relaxed);
    atomic_store_explicit(&modules_thread_end_hook_first, sample_thread_end_hook, memory_order_release);
    return sample_thread_begin_ticks();
}

// A trap that was raised comes when its thread goes back to its own code: to one that was put off its processor on that
// way, much later. It must find our handler still: a trap without a handler ends the process. False: some have not
// gone on in all that time.
static bool wait_for_traps(struct sample_ticker *tickers, uint32_t count)
{
    enum { MOST_NS = 200000000, STEP_US = 200 };
    uint32_t own_tid = os_thread_id();
    for (uint32_t i = 0; tickers && i < count; i++)
        tickers[i].cpu_ns_at_end = os_cpu_ns_of(atomic_load_explicit(&tickers[i].tid, memory_order_relaxed));
    uint64_t begin_ns = os_now_ns();
    for (uint32_t i = 0; tickers && i < count; i++) {
        uint32_t tid = atomic_load_explicit(&tickers[i].tid, memory_order_relaxed);
        while (tid && tid != own_tid && !os_thread_went_on(tid, tickers[i].cpu_ns_at_end)) {
            if (os_now_ns() - begin_ns >= MOST_NS)
                return false;
            os_sleep_us(STEP_US);
        }
    }
    return true;
}

static void end_ticks(void)
{
    struct sample_sampler *sampler = &sample_sampler;
    struct sample_ticker *tickers = atomic_load_explicit(&sampler->tickers, memory_order_relaxed);
    uint32_t count = atomic_load_explicit(&sampler->ticker_count, memory_order_relaxed);
    int signal_number = atomic_load_explicit(&sampler->signal_number, memory_order_relaxed);
    sample_tickers_hide();
    for (uint32_t i = 0; tickers && i < count; i++)
        if (atomic_load_explicit(&tickers[i].tid, memory_order_relaxed))
            sample_ticker_disarm(&tickers[i]);
    bool all_came = signal_number != SIGTRAP || wait_for_traps(tickers, count);
    if (signal_number && !keeps_trap)
        os_tick_signal_give_back(signal_number, all_came ? &sampler->before : NULL);
    atomic_store_explicit(&sampler->signal_number, 0, memory_order_relaxed);
    atomic_store_explicit(&sampler->is_guarding, 0, memory_order_relaxed);
    atomic_store_explicit(&sampler->threads, 0, memory_order_relaxed);
    atomic_store_explicit(&sampler->by_timer_count, 0, memory_order_relaxed);
    if (tickers)
        sample_tickers_destroy(tickers);
}

// With lock.
static int start(uint32_t wanted, int wanted_signal)
{
    struct sample_sampler *sampler = &sample_sampler;
    uint32_t trigger = QUT_TRIGGER_NONE;
    int result = 0;
    if (wanted != QUT_TRIGGER_NONE || sampler->fault_period) {
        const bool traps = (wanted_signal == 0 || wanted_signal == SIGTRAP || keeps_trap) && can_trap(wanted);
        if (keeps_trap && !traps && wanted != QUT_TRIGGER_NONE) { // timers send any signal
            wanted = wanted == QUT_TRIGGER_WALL ? wanted : (uint32_t)QUT_TRIGGER_CPU_TIMER;
            sampler->may_change = false;
        }
        int signal_number = traps || keeps_trap ? SIGTRAP : os_tick_signal_choose(wanted_signal);
        if (signal_number < 0)
            return signal_number;
        result = choose_trigger(wanted, signal_number, &trigger);
        if (result == 0 && sampler->fault_period)
            result = sample_trigger_try_faults(signal_number);
        if (result == 0)
            result = os_tick_signal_take(signal_number, sample_tick, &sampler->before);
        if (result != 0)
            return result;
        atomic_store_explicit(&sampler->signal_number, signal_number, memory_order_relaxed);
        result = begin_ticks(trigger);
        if (result != 0) {
            end_ticks();
            return result;
        }
    }
    atomic_store_explicit(&sampler->trigger, trigger, memory_order_relaxed);
    sampler->is_started = true;
    sample_sync_begin(sampler->sync_interval_ns);
    return 0;
}

// ---- fork

static uint64_t blocked_before_fork; // under lock

static void before_fork(void)
{
    uint64_t blocked = sampler_lock();
    blocked_before_fork = blocked;
}

static void in_parent(void)
{
    sampler_unlock(blocked_before_fork);
}

// Its parent's events and timers are not there; descriptors of events are.
static void in_child(void)
{
    struct sample_ticker *tickers = atomic_load_explicit(&sample_sampler.tickers, memory_order_relaxed);
    uint32_t count = atomic_load_explicit(&sample_sampler.ticker_count, memory_order_relaxed);
    for (uint32_t i = 0; tickers && i < count; i++) {
        if (!atomic_load_explicit(&tickers[i].tid, memory_order_relaxed))
            continue;
        tickers[i].clock.pages = tickers[i].faults.pages = NULL; // mappings of events are not inherited
        os_event_close(&tickers[i].clock);
        os_event_close(&tickers[i].faults);
    }
    sample_tickers_in_child();
    atomic_store_explicit(&sample_sampler.by_timer_count, 0, memory_order_relaxed);
    clear_counts();
    sampler_unlock(blocked_before_fork);
}

int qut_sampling_after_fork(void)
{
    if (!feed_trace_is_open())
        return -EINVAL;
    int result = qut_trace_thread_register();
    return result == 0 ? sampling_ticks_after_fork() : result;
}

int sampling_ticks_after_fork(void)
{
    int result = 0;
    struct sample_sampler *sampler = &sample_sampler;
    uint64_t blocked = sampler_lock();
    int signal_number = atomic_load_explicit(&sampler->signal_number, memory_order_relaxed);
    bool has_ticks = atomic_load_explicit(&sampler->tickers, memory_order_relaxed) != NULL;
    if (!sampler->is_started)
        result = -EINVAL;
    else if (signal_number && !has_ticks)
        result = begin_ticks(atomic_load_explicit(&sampler->trigger, memory_order_relaxed));
    else if (has_ticks)
        result = sample_thread_begin_ticks();
    if (signal_number)
        blocked &= ~((uint64_t)1 << (signal_number - 1));
    sampler_unlock(blocked);
    return result;
}

// ---- the public ones

int qut_sampling_start(const struct qut_sampling_options *options)
{
    static bool watches_forks;
    const bool is_waiting = feed_is_waiting();
    if (!is_valid(options) || !(feed_trace_is_open() || is_waiting))
        return -EINVAL;
    int result = is_waiting ? qut_thread_register() : qut_trace_thread_register();
    if (result != 0)
        return result;
    uint64_t blocked = sampler_lock();
    result = sample_sampler.is_started ? -EALREADY : 0;
    if (result == 0 && !watches_forks) {
        result = os_at_fork(before_fork, in_parent, in_child);
        watches_forks = result == 0;
    }
    if (result == 0) {
        copy_options(options);
        clear_counts();
        result = start(options->trigger, options->signal_number);
        int signal_number = atomic_load_explicit(&sample_sampler.signal_number, memory_order_relaxed);
        if (signal_number)
            blocked &= ~((uint64_t)1 << (signal_number - 1));
    }
    sampler_unlock(blocked);
    return result;
}

void qut_sampling_stop(void)
{
    uint64_t blocked = sampler_lock();
    if (sample_sampler.is_started) {
        sample_sync_end();
        end_ticks();
        sample_sampler.is_started = false;
    }
    sampler_unlock(blocked);
}

void qut_sampling_settle(void)
{
    atomic_store_explicit(&sample_sampler.is_settled, true, memory_order_relaxed);
}

uint32_t qut_sampling_trigger(void)
{
    return atomic_load_explicit(&sample_sampler.trigger, memory_order_relaxed);
}

bool qut_sampling_interrupts(void)
{
    uint32_t trigger = qut_sampling_trigger();
    return trigger == QUT_TRIGGER_WALL || (trigger == QUT_TRIGGER_CPU_TIMER && !sample_sampler.timers_wait);
}

int qut_sampling_signal(void)
{
    return atomic_load_explicit(&sample_sampler.signal_number, memory_order_relaxed);
}
