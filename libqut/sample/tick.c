// SPDX-License-Identifier: Apache-2.0
// The handler of ticks: on whatever stack the thread has for handlers, with all signals blocked.
#include <errno.h>

#include "libqut/arch/native.h"
#include "libqut/arch/system_call.h"
#include "libqut/sample/sampling.h"

// Whether a call that was interrupted says so to whoever made it: else the thread would be in front of it again.
static bool is_behind_interrupted_call(const void *ucontext)
{
    const struct qut_register_layout *layout = qut_native_arch.ucontext_registers;
    uintptr_t block = (uintptr_t)ucontext, pc = qut_os_load(block + layout->pc_offset);
    uintptr_t result = qut_os_load(block + layout->reg_offset[qut_arch_result_register(&qut_native_arch)]);
    uint8_t before[QUT_SYSTEM_CALL_BYTES];
    return result == (uintptr_t)-EINTR &&
           qut_os_read_self(pc - QUT_SYSTEM_CALL_BYTES, before, sizeof before) == sizeof before &&
           qut_arch_is_system_call(&qut_native_arch, before);
}

// One writer: the thread.
static void count(_Atomic uint64_t *counter, uint64_t amount)
{
    atomic_store_explicit(counter, atomic_load_explicit(counter, memory_order_relaxed) + amount, memory_order_relaxed);
}

static void sample(const void *ucontext, uint32_t kind)
{
    uint64_t metrics[QUT_METRIC_COUNT];
    struct qut_event event = {.kind = kind, .metrics = qut_sample_measure(metrics, NULL)};
    if (kind != QUT_SAMPLE_WALL)
        event.flags = QUT_EVENT_ON_CPU;
    qut_trace_sample(ucontext, &event);
}

// Its name may say another pace by now. Threads are often named when they have begun.
static void look_at_name(struct qut_ticker *ticker)
{
    enum { EVERY = 16 };
    uint32_t ticks = ticker->tick_count;
    if (ticks >= EVERY && ticks % EVERY != 0)
        return;
    char name[QUT_OS_NAME_BYTES];
    if (!qut_os_own_thread_name(name) || __builtin_memcmp(name, ticker->name, sizeof name) == 0)
        return;
    __builtin_memcpy(ticker->name, name, sizeof name);
    uint64_t period_ns = qut_pace_of(atomic_load_explicit(&ticker->tid, memory_order_relaxed), name);
    if (period_ns != ticker->period_ns)
        qut_ticker_rearm(ticker, period_ns);
}

static void tick(struct qut_ticker *ticker, const void *ucontext, uint64_t overrun_count)
{
    uint32_t trigger = atomic_load_explicit(&qut_sampler.trigger, memory_order_relaxed);
    bool is_timer = ticker->timer >= 0;
    if (!ticker->is_armed)
        return; // it was sent before that
    bool interrupts = is_timer && atomic_load_explicit(&qut_sampler.is_guarding, memory_order_relaxed);
    if (interrupts && is_behind_interrupted_call(ucontext))
        atomic_fetch_add_explicit(&qut_sampler.eintr_seen, 1, memory_order_relaxed);
    qut_sync_tick();
    sample(ucontext, trigger == QUT_TRIGGER_WALL ? QUT_SAMPLE_WALL : QUT_SAMPLE_CPU);
    count(&ticker->counts.taken, 1);
    count(&ticker->counts.late, overrun_count);
    if (!is_timer)
        atomic_store_explicit(&ticker->counts.fired, qut_os_event_fired(&ticker->clock), memory_order_relaxed);
    qut_switches_look(ticker);
    if (qut_pace_asks_for_names())
        look_at_name(ticker);
    ticker->tick_count++;
}

void qut_tick(int number, siginfo_t *info, void *ucontext)
{
    int saved_errno = errno;
    enum qut_os_tick_source source = qut_os_tick_source(info, &qut_timer_cookie);
    struct qut_ticker *tickers = qut_tickers_enter();
    struct qut_ticker *ticker = tickers && source != QUT_OS_TICK_STRAY ? qut_ticker_self(tickers) : NULL;
    if (source == QUT_OS_TICK_STRAY)
        atomic_fetch_add_explicit(&qut_sampler.strays, 1, memory_order_relaxed);
    else if (!ticker)
        ; // it was sent before the thread's ticks ended: as late as that, and counted so
    else if (source == QUT_OS_TICK_EVENT &&
             qut_os_tick_mark(info) == atomic_load_explicit(&ticker->fault_mark, memory_order_relaxed))
        sample(ucontext, QUT_SAMPLE_FAULT);
    else
        tick(ticker, ucontext, source == QUT_OS_TICK_TIMER && info->si_overrun > 0 ? (uint64_t)info->si_overrun : 0);
    qut_tickers_leave();
    if (source == QUT_OS_TICK_TIMER && qut_sampler.timers_wait)
        qut_restart_look(number, ucontext);
    if (source == QUT_OS_TICK_STRAY)
        qut_os_tick_signal_as_before(number, &qut_sampler.before);
    errno = saved_errno;
}
