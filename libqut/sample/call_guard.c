// SPDX-License-Identifier: Apache-2.0
// Around calls that a signal would interrupt: the thread's timer stands still, its mask is left alone. What the timer
// had sent before is delivered before the call that stops it returns.
#include "libqut/sample/inside.h"

// A handler of the program's jumped out of what was guarded: what runs now runs further out on the same stack.
static void heal(struct sample_ticker *ticker, uintptr_t here)
{
    uintptr_t low, high;
    if (ticker->guard_depth && here > ticker->guard_sp && !os_alternate_stack(&low, &high))
        ticker->guard_depth = 0;
}

static void begin(struct sample_ticker *ticker, uintptr_t here)
{
    heal(ticker, here);
    if (ticker->guard_depth++ != 0)
        return;
    ticker->guard_sp = here;
    ticker->guard_began_ns = os_now_ns();
    if (!atomic_load_explicit(&ticker->is_armed, memory_order_relaxed) || ticker->timer < 0)
        return;
    uint64_t left_ns = os_timer_set(ticker->timer, 0, 0);
    if (left_ns) // else a handler came between the end of an outer one and its timer
        ticker->guard_left_ns = left_ns;
}

static void end(struct sample_ticker *ticker)
{
    if (ticker->guard_depth == 0)
        return; // it began before there were ticks
    uint64_t left_ns = ticker->guard_left_ns, now_ns = os_now_ns();
    if (ticker->guard_depth == 1)
        ticker->guarded_ns += now_ns - ticker->guard_began_ns;
    atomic_signal_fence(memory_order_seq_cst);
    if (--ticker->guard_depth != 0 || !atomic_load_explicit(&ticker->is_armed, memory_order_relaxed) ||
        ticker->timer < 0)
        return;
    os_timer_set(ticker->timer, left_ns ? left_ns : 1, ticker->period_ns);
}

static bool is_guarding(void)
{
    return __builtin_expect(atomic_load_explicit(&sample_sampler.is_guarding, memory_order_relaxed) != 0, 0);
}

void qut_guard_begin(void)
{
    if (!is_guarding())
        return;
    struct sample_ticker *tickers = sample_tickers_enter(), *ticker = tickers ? sample_ticker_self(tickers) : NULL;
    if (ticker)
        begin(ticker, (uintptr_t)__builtin_frame_address(0));
    sample_tickers_leave();
}

void qut_guard_end(void)
{
    if (!is_guarding())
        return;
    struct sample_ticker *tickers = sample_tickers_enter(), *ticker = tickers ? sample_ticker_self(tickers) : NULL;
    if (ticker)
        end(ticker);
    sample_tickers_leave();
}
