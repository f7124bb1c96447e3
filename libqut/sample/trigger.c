// SPDX-License-Identifier: Apache-2.0
// What makes a thread tick: an event of perf's, or a timer. Signal-safe where the calling thread's own is armed anew:
// plain system calls.
#include "libqut/sample/sampling.h"

const char qut_timer_cookie = 0; // its address is what counts

static void *cookie(void)
{
    return (void *)(uintptr_t)&qut_timer_cookie;
}

static int try_event(enum qut_os_event_kind kind, int signal_number)
{
    struct qut_os_event event;
    int result = qut_os_event_open(&event, kind, qut_os_thread_id(), 1000000000, signal_number, -1, cookie());
    if (result == 0)
        qut_os_event_close(&event);
    return result;
}

int qut_trigger_try_faults(int signal_number)
{
    return try_event(QUT_OS_EVENT_FAULTS, signal_number);
}

int qut_trigger_try(uint32_t trigger, int signal_number)
{
    int32_t timer = -1;
    if (trigger == QUT_TRIGGER_NONE)
        return 0;
    if (trigger == QUT_TRIGGER_TASK_CLOCK)
        return try_event(QUT_OS_EVENT_CLOCK, signal_number);
    int result = qut_os_timer_create(&timer, trigger == QUT_TRIGGER_WALL ? QUT_OS_TIMER_REAL : QUT_OS_TIMER_CPU,
                                     qut_os_thread_id(), signal_number, cookie());
    qut_os_timer_delete(timer);
    return result;
}

static int arm_faults(struct qut_ticker *ticker, uint32_t tid, int signal_number)
{
    int result = qut_os_event_open(&ticker->faults, QUT_OS_EVENT_FAULTS, tid, qut_sampler.fault_period, signal_number,
                                   ticker->clock.mark, cookie());
    if (result != 0)
        return result;
    atomic_store_explicit(&ticker->fault_mark, ticker->faults.mark, memory_order_relaxed);
    atomic_signal_fence(memory_order_seq_cst);
    qut_os_event_enable(&ticker->faults);
    return 0;
}

static int arm_timer(struct qut_ticker *ticker, uint32_t tid, uint32_t trigger, int signal_number)
{
    int result = qut_os_timer_create(&ticker->timer, trigger == QUT_TRIGGER_WALL ? QUT_OS_TIMER_REAL : QUT_OS_TIMER_CPU,
                                     tid, signal_number, cookie());
    if (result != 0)
        return result;
    // Within a guard it is armed at its end.
    ticker->guard_left_ns = ticker->period_ns;
    if (trigger == QUT_TRIGGER_WALL || !qut_sampler.timers_wait)
        atomic_store_explicit(&qut_sampler.is_guarding, 1, memory_order_relaxed);
    if (ticker->guard_depth == 0)
        qut_os_timer_set(ticker->timer, ticker->period_ns, ticker->period_ns);
    return 0;
}

static int arm_event(struct qut_ticker *ticker, uint32_t tid, int signal_number)
{
    int result = qut_os_event_open(&ticker->clock, QUT_OS_EVENT_CLOCK, tid, ticker->period_ns, signal_number,
                                   atomic_load_explicit(&ticker->fault_mark, memory_order_relaxed), cookie());
    if (result == 0)
        qut_os_event_enable(&ticker->clock);
    return result;
}

// Where there are too many threads for events (memory that may be locked, descriptors), or for timers (signals that may
// be pending), the other ones are better than nothing.
static int arm_clock(struct qut_ticker *ticker, uint32_t tid, uint32_t trigger, int signal_number)
{
    ticker->armed_ns = qut_os_now_ns();
    if (!qut_os_task_times(tid, &ticker->times))
        ticker->times = (struct qut_os_task_times){0, 0, 0};
    if (trigger != QUT_TRIGGER_TASK_CLOCK)
        return arm_timer(ticker, tid, trigger, signal_number);
    if (ticker->is_by_timer && arm_timer(ticker, tid, trigger, signal_number) == 0)
        return 0;
    qut_switches_forget(ticker);
    int result = arm_event(ticker, tid, signal_number);
    if (result != 0 && qut_sampler.may_use_timers && arm_timer(ticker, tid, trigger, signal_number) == 0)
        return 0;
    return result;
}

int qut_ticker_arm(struct qut_ticker *ticker, uint64_t period_ns)
{
    uint32_t tid = atomic_load_explicit(&ticker->tid, memory_order_relaxed);
    uint32_t trigger = atomic_load_explicit(&qut_sampler.trigger, memory_order_relaxed);
    int signal_number = atomic_load_explicit(&qut_sampler.signal_number, memory_order_relaxed);
    int result = 0;
    ticker->period_ns = trigger == QUT_TRIGGER_NONE ? 0 : period_ns;
    if (ticker->period_ns)
        result = arm_clock(ticker, tid, trigger, signal_number);
    ticker->is_armed = result == 0 && ticker->period_ns;
    if (result == 0 && qut_sampler.fault_period && !ticker->faults.pages && ticker->faults.fd < 0)
        result = arm_faults(ticker, tid, signal_number);
    return result;
}

// The event of faults stays.
static void disarm_clock(struct qut_ticker *ticker)
{
    if (!ticker->is_armed)
        return;
    struct qut_tally tally;
    if (ticker->guard_depth) {
        uint64_t now_ns = qut_os_now_ns();
        ticker->guarded_ns += now_ns - ticker->guard_began_ns;
        ticker->guard_began_ns = now_ns;
    }
    qut_tally_ticker(ticker, atomic_load_explicit(&ticker->tid, memory_order_relaxed),
                     qut_os_event_fired(&ticker->clock), &tally);
    ticker->is_armed = false;
    qut_os_event_close(&ticker->clock);
    qut_os_timer_delete(ticker->timer);
    ticker->timer = -1;
    qut_tally_ended(&tally);
    atomic_store_explicit(&ticker->counts.taken, 0, memory_order_relaxed);
    atomic_store_explicit(&ticker->counts.late, 0, memory_order_relaxed);
    atomic_store_explicit(&ticker->counts.fired, 0, memory_order_relaxed);
    ticker->guarded_ns = 0;
}

void qut_ticker_rearm(struct qut_ticker *ticker, uint64_t period_ns)
{
    disarm_clock(ticker);
    if (qut_ticker_arm(ticker, period_ns) != 0)
        atomic_fetch_add_explicit(&qut_sampler.threads_failed, 1, memory_order_relaxed);
}

void qut_ticker_disarm(struct qut_ticker *ticker)
{
    disarm_clock(ticker);
    qut_os_event_close(&ticker->faults);
}
