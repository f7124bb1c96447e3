// SPDX-License-Identifier: Apache-2.0
// What makes a thread tick: an event of perf's, or a timer. Signal-safe where the calling thread's own is armed anew:
// plain system calls.
#include "libqut/sample/inside.h"

const char sample_timer_cookie = 0; // its address is what counts

static void *cookie(void)
{
    return (void *)(uintptr_t)&sample_timer_cookie;
}

int sample_trigger_try_faults(int signal_number)
{
    return os_event_try(OS_EVENT_FAULTS, os_thread_id(), signal_number);
}

int sample_trigger_try(uint32_t trigger, int signal_number)
{
    int32_t timer = -1;
    if (trigger == QUT_TRIGGER_NONE)
        return 0;
    if (trigger == QUT_TRIGGER_TASK_CLOCK)
        return os_event_try(OS_EVENT_CLOCK, os_thread_id(), signal_number);
    int result = os_timer_create(&timer, trigger == QUT_TRIGGER_WALL ? OS_TIMER_REAL : OS_TIMER_CPU, os_thread_id(),
                                 signal_number, cookie());
    os_timer_delete(timer);
    return result;
}

static int arm_faults(struct sample_ticker *ticker, uint32_t tid, int signal_number)
{
    int result = os_event_open(&ticker->faults, OS_EVENT_FAULTS, tid, sample_sampler.fault_period, signal_number,
                               ticker->clock.mark, cookie());
    if (result != 0)
        return result;
    atomic_store_explicit(&ticker->fault_mark, ticker->faults.mark, memory_order_relaxed);
    atomic_signal_fence(memory_order_seq_cst);
    result = os_event_enable(&ticker->faults);
    if (result != 0)
        os_event_close(&ticker->faults);
    return result;
}

static int arm_timer(struct sample_ticker *ticker, uint32_t tid, uint32_t trigger, int signal_number)
{
    int result = os_timer_create(&ticker->timer, trigger == QUT_TRIGGER_WALL ? OS_TIMER_REAL : OS_TIMER_CPU, tid,
                                 signal_number, cookie());
    if (result != 0)
        return result;
    // Within a guard it is armed at its end.
    ticker->guard_left_ns = ticker->period_ns;
    if (trigger == QUT_TRIGGER_WALL || !sample_sampler.timers_wait)
        atomic_store_explicit(&sample_sampler.is_guarding, 1, memory_order_relaxed);
    if (ticker->guard_depth == 0)
        os_timer_set(ticker->timer, ticker->period_ns, ticker->period_ns);
    return 0;
}

static int arm_event(struct sample_ticker *ticker, uint32_t tid, int signal_number)
{
    int result = os_event_open(&ticker->clock, OS_EVENT_CLOCK, tid, ticker->period_ns, signal_number,
                               atomic_load_explicit(&ticker->fault_mark, memory_order_relaxed), cookie());
    if (result == 0 && (result = os_event_enable(&ticker->clock)) != 0)
        os_event_close(&ticker->clock);
    return result;
}

bool sample_ticker_has_event(const struct sample_ticker *ticker)
{
    return ticker->clock.pages || ticker->clock.fd >= 0;
}

// For what the kernel does, where that interrupts no call.
static void arm_timer_beside(struct sample_ticker *ticker, uint32_t tid, int signal_number)
{
    if (sample_sampler.timers_wait && arm_timer(ticker, tid, QUT_TRIGGER_CPU_TIMER, signal_number) != 0)
        atomic_fetch_add_explicit(&sample_sampler.threads_without_kernel, 1, memory_order_relaxed);
}

// Where there are too many threads for events (memory that may be locked, descriptors), or for timers (signals that may
// be pending), the other ones are better than nothing.
static int arm_clock(struct sample_ticker *ticker, uint32_t tid, uint32_t trigger, int signal_number)
{
    ticker->armed_ns = os_now_ns();
    if (!os_task_times(tid, &ticker->times))
        ticker->times = (struct os_task_times){0, 0, 0};
    sample_kernel_begin(ticker);
    sample_reach_restart(ticker);
    if (trigger != QUT_TRIGGER_TASK_CLOCK)
        return arm_timer(ticker, tid, trigger, signal_number);
    if (ticker->is_by_timer && arm_timer(ticker, tid, trigger, signal_number) == 0)
        return 0;
    sample_ticker_set_by_timer(ticker, false);
    int result = arm_event(ticker, tid, signal_number);
    if (result == 0)
        arm_timer_beside(ticker, tid, signal_number);
    else if (sample_sampler.may_use_timers && arm_timer(ticker, tid, trigger, signal_number) == 0)
        return 0;
    return result;
}

int sample_ticker_arm(struct sample_ticker *ticker, uint64_t period_ns)
{
    uint32_t tid = atomic_load_explicit(&ticker->tid, memory_order_relaxed);
    uint32_t trigger = atomic_load_explicit(&sample_sampler.trigger, memory_order_relaxed);
    int signal_number = atomic_load_explicit(&sample_sampler.signal_number, memory_order_relaxed);
    int result = 0;
    ticker->asked_ns = period_ns;
    ticker->period_ns = trigger == QUT_TRIGGER_NONE         ? 0
                        : trigger == QUT_TRIGGER_TASK_CLOCK ? sample_out_of_step(sample_reach_period(period_ns))
                                                            : period_ns;
    if (ticker->period_ns)
        result = arm_clock(ticker, tid, trigger, signal_number);
    atomic_store_explicit(&ticker->is_armed, result == 0 && ticker->period_ns, memory_order_release);
    if (result == 0 && sample_sampler.fault_period && !ticker->faults.pages && ticker->faults.fd < 0)
        result = arm_faults(ticker, tid, signal_number);
    return result;
}

// The event of faults stays.
static void disarm_clock(struct sample_ticker *ticker)
{
    if (!atomic_load_explicit(&ticker->is_armed, memory_order_relaxed))
        return;
    struct sample_tally tally;
    if (ticker->guard_depth) {
        uint64_t now_ns = os_now_ns();
        ticker->guarded_ns += now_ns - ticker->guard_began_ns;
        ticker->guard_began_ns = now_ns;
    }
    sample_tally_ticker(ticker, atomic_load_explicit(&ticker->tid, memory_order_relaxed),
                        os_event_fired(&ticker->clock), &tally);
    atomic_store_explicit(&ticker->is_armed, false, memory_order_relaxed);
    os_event_close(&ticker->clock);
    os_timer_delete(ticker->timer);
    ticker->timer = -1;
    sample_tally_ended(&tally);
    atomic_store_explicit(&ticker->counts.taken, 0, memory_order_relaxed);
    atomic_store_explicit(&ticker->counts.late, 0, memory_order_relaxed);
    atomic_store_explicit(&ticker->counts.fired, 0, memory_order_relaxed);
    atomic_store_explicit(&ticker->counts.beside, 0, memory_order_relaxed);
    ticker->guarded_ns = 0;
}

void sample_ticker_rearm(struct sample_ticker *ticker, uint64_t period_ns)
{
    disarm_clock(ticker);
    if (sample_ticker_arm(ticker, period_ns) != 0)
        atomic_fetch_add_explicit(&sample_sampler.threads_failed, 1, memory_order_relaxed);
}

void sample_ticker_disarm(struct sample_ticker *ticker)
{
    disarm_clock(ticker);
    os_event_close(&ticker->faults);
}
