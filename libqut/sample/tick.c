// SPDX-License-Identifier: Apache-2.0
// The handler of ticks: on whatever stack the thread has for handlers, with all signals blocked.
#include <errno.h>

#include "formats/qut_trace.h"
#include "libqut/arch/native.h"
#include "libqut/arch/system_call.h"
#include "libqut/host/host.h"
#include "libqut/sample/inside.h"
#include "libqut/trace/feed_sample.h"

_Atomic(host_tick_call) sampling_before_sample;
_Atomic uint32_t sampling_halvings;

// Whether a call that was interrupted says so to its caller: else the thread would be in front of it again.
static bool is_behind_interrupted_call(const void *ucontext)
{
    const struct arch_register_layout *layout = arch_native_arch.ucontext_registers;
    uintptr_t block = (uintptr_t)ucontext, pc = os_load(block + layout->pc_offset);
    uintptr_t result = os_load(block + layout->reg_offset[arch_native_arch.result_reg]);
    uint8_t before[ARCH_SYSTEM_CALL_BYTES];
    return result == (uintptr_t)-EINTR &&
           os_read_self(pc - ARCH_SYSTEM_CALL_BYTES, before, sizeof before) == sizeof before &&
           arch_is_system_call(&arch_native_arch, before);
}

// One writer: the thread.
static void count(_Atomic uint64_t *counter, uint64_t amount)
{
    atomic_store_explicit(counter, atomic_load_explicit(counter, memory_order_relaxed) + amount, memory_order_relaxed);
}

// With the kernel's own frame.
static void sample_in_kernel(const void *ucontext, const struct sample_kernel_tick *kernel)
{
    uint64_t metrics[QUT_METRIC_COUNT];
    const struct qut_extra cpu = {.key = QUT_EXTRA_CPU_NS, .value = kernel->cpu_ns};
    const struct qut_event event = {.kind = QUT_SAMPLE_CPU,
                                    .flags = QUT_EVENT_ON_CPU,
                                    .metrics = sample_measure(metrics, NULL),
                                    .extras = &cpu,
                                    .extra_count = 1};
    if (kernel->code == QUT_TRACE_KERNEL_OWN)
        feed_trace_sample_own(&event);
    else
        feed_trace_sample_in_kernel(ucontext, &event, kernel->code);
}

static void sample(const void *ucontext, uint32_t kind)
{
    uint64_t metrics[QUT_METRIC_COUNT];
    struct qut_event event = {.kind = kind, .metrics = sample_measure(metrics, NULL)};
    if (kind != QUT_SAMPLE_WALL)
        event.flags = QUT_EVENT_ON_CPU;
    qut_trace_sample(ucontext, &event);
}

// Its name may say another pace by now. Threads are often named when they have begun.
static void look_at_name(struct sample_ticker *ticker)
{
    enum { EVERY = 16 };
    uint32_t ticks = ticker->tick_count;
    if (ticks >= EVERY && ticks % EVERY != 0)
        return;
    char name[OS_NAME_BYTES];
    if (!os_own_thread_name(name) || __builtin_memcmp(name, ticker->name, sizeof name) == 0)
        return;
    __builtin_memcpy(ticker->name, name, sizeof name);
    uint64_t period_ns = sample_pace_of(atomic_load_explicit(&ticker->tid, memory_order_relaxed), name);
    if (period_ns != ticker->asked_ns)
        sample_ticker_rearm(ticker, period_ns);
}

// Before the kernel's time is looked at, which then goes to the next tick that is stored.
static bool is_thinned(struct sample_ticker *ticker, bool is_timers, bool is_beside)
{
    const uint32_t halvings = atomic_load_explicit(&sampling_halvings, memory_order_relaxed);
    if (__builtin_expect(halvings == 0, 1) || !(++ticker->thinned[is_beside] & ((1u << halvings) - 1)))
        return false;
    if (!is_beside)
        count(&ticker->counts.taken, 1);
    if (!is_timers)
        atomic_store_explicit(&ticker->counts.fired, os_event_fired(&ticker->clock), memory_order_relaxed);
    return true;
}

// A sample that takes longer than the ticks' period, of a deep stack with names on a busy machine, would be followed by
// the next one at once, and the program would come to nothing. So a tick right behind a sample begins a rest, as long
// as that sample took, within bounds: it may have waited for a processor. What ticks meanwhile is late, and its time is
// in the next sample.
enum { BEHIND_PART_OF_PERIOD = 8, REST_MOST_PERIODS = 4 };

static bool rests(struct sample_ticker *ticker, uint64_t entered_ns)
{
    uint64_t most_ns = REST_MOST_PERIODS * ticker->period_ns, took_ns = ticker->sample_took_ns;
    if (__builtin_expect(entered_ns - ticker->sample_left_ns < ticker->period_ns / BEHIND_PART_OF_PERIOD, 0))
        ticker->rests_until_ns = entered_ns + (took_ns < most_ns ? took_ns : most_ns);
    return __builtin_expect(entered_ns < ticker->rests_until_ns, 0);
}

static void count_rested(struct sample_ticker *ticker, bool is_timers, uint64_t overrun_count)
{
    ticker->rested_count += overrun_count + 1;
    if (is_timers) // an event counts itself
        count(&ticker->counts.late, overrun_count + 1);
}

// Beside an event, which has all ticks of user mode, a timer's other ticks are none.
static void tick(struct sample_ticker *ticker, const void *ucontext, bool is_timers, uint64_t overrun_count)
{
    uint64_t entered_ns = os_now_ns();
    uint32_t trigger = atomic_load_explicit(&sample_sampler.trigger, memory_order_relaxed);
    if (!atomic_load_explicit(&ticker->is_armed, memory_order_acquire))
        return; // it was sent before that
    bool interrupts = is_timers && atomic_load_explicit(&sample_sampler.is_guarding, memory_order_relaxed);
    if (interrupts && is_behind_interrupted_call(ucontext))
        atomic_fetch_add_explicit(&sample_sampler.eintr_seen, 1, memory_order_relaxed);
    bool is_beside = is_timers && sample_ticker_has_event(ticker);
    if (is_thinned(ticker, is_timers, is_beside))
        return;
    const bool is_resting = rests(ticker, entered_ns);
    if (is_resting && !is_beside) {
        count_rested(ticker, is_timers, overrun_count);
        return;
    }
    struct sample_kernel_tick kernel;
    bool is_in_kernel = is_timers && trigger != QUT_TRIGGER_WALL && sample_kernel_look(ticker, ucontext, &kernel);
    if (is_in_kernel && is_resting && kernel.code != QUT_TRACE_KERNEL_OWN) { // that takes no walk
        ticker->kernel_ns += kernel.cpu_ns;
        is_in_kernel = false;
    }
    if (is_beside && !is_in_kernel) {
        sample_reach_look(ticker);
        return;
    }
    const host_tick_call before = atomic_load_explicit(&sampling_before_sample, memory_order_acquire);
    if (__builtin_expect(before != NULL, 0) && !before())
        return;
    sample_sync_tick();
    if (is_in_kernel)
        sample_in_kernel(ucontext, &kernel);
    else
        sample(ucontext, trigger == QUT_TRIGGER_WALL ? QUT_SAMPLE_WALL : QUT_SAMPLE_CPU);
    count(&ticker->counts.taken, 1);
    if (is_beside)
        count(&ticker->counts.beside, 1);
    else if (is_timers)
        count(&ticker->counts.late, overrun_count);
    else
        atomic_store_explicit(&ticker->counts.fired, os_event_fired(&ticker->clock), memory_order_relaxed);
    sample_switches_look(ticker);
    if (is_beside)
        sample_reach_look(ticker);
    if (sample_pace_asks_for_names())
        look_at_name(ticker);
    ticker->tick_count++;
    if (is_resting) // behind the sample that the rest is for, which it still is
        return;
    ticker->sample_left_ns = os_now_ns();
    ticker->sample_took_ns = ticker->sample_left_ns - entered_ns;
}

bool sampling_is_tick(const siginfo_t *info)
{
    return os_tick_source(info, &sample_timer_cookie) != OS_TICK_STRAY;
}

void sample_tick(int number, siginfo_t *info, void *ucontext)
{
    int saved_errno = errno;
    enum os_tick_source source = os_tick_source(info, &sample_timer_cookie);
    struct sample_ticker *tickers = sample_tickers_enter();
    struct sample_ticker *ticker = tickers && source != OS_TICK_STRAY ? sample_ticker_self(tickers) : NULL;
    if (source == OS_TICK_STRAY)
        atomic_fetch_add_explicit(&sample_sampler.strays, 1, memory_order_relaxed);
    else if (!ticker)
        ; // it was sent before the thread's ticks ended: as late as that, and counted so
    else if (source == OS_TICK_EVENT &&
             os_tick_mark(info) == atomic_load_explicit(&ticker->fault_mark, memory_order_relaxed))
        sample(ucontext, QUT_SAMPLE_FAULT);
    else
        tick(ticker, ucontext, source == OS_TICK_TIMER,
             source == OS_TICK_TIMER && info->si_overrun > 0 ? (uint64_t)info->si_overrun : 0);
    if (ticker)
        ticker->handler_left_ns = os_now_ns();
    sample_tickers_leave();
    if (source == OS_TICK_TIMER && sample_sampler.timers_wait)
        sample_restart_look(number, ucontext);
    if (source == OS_TICK_STRAY)
        os_tick_signal_as_before(number, &sample_sampler.before);
    errno = saved_errno;
}
