// SPDX-License-Identifier: Apache-2.0
// The places of threads that tick. A place is found by two words of the thread's own, and the first time by its number:
// threads that were given ticks by others have no words yet.
#include <errno.h>
#include <string.h>

#include "libqut/sample/inside.h"

struct sample_sampler sample_sampler;
static _Atomic uint32_t inside_count; // of those between enter and leave

enum { POOL_BYTES = SAMPLE_TICKERS_MAX * (int)sizeof(struct sample_ticker) };

uint64_t sampler_lock(void)
{
    uint64_t blocked = os_block_signals();
    os_lock(&sample_sampler.lock);
    return blocked;
}

void sampler_unlock(uint64_t blocked)
{
    os_unlock(&sample_sampler.lock);
    os_restore_signals(blocked);
}

// ---- threads that look at them

// Hiding them takes the pointer away, then looks at the count: each side's store comes before its load.
struct sample_ticker *sample_tickers_enter(void)
{
    atomic_fetch_add_explicit(&inside_count, 1, memory_order_seq_cst);
    os_set_thread_word(OS_WORD_TICKER_DEPTH, os_thread_word(OS_WORD_TICKER_DEPTH) + 1);
    return atomic_load_explicit(&sample_sampler.tickers, memory_order_seq_cst);
}

void sample_tickers_leave(void)
{
    os_set_thread_word(OS_WORD_TICKER_DEPTH, os_thread_word(OS_WORD_TICKER_DEPTH) - 1);
    atomic_fetch_sub_explicit(&inside_count, 1, memory_order_release);
}

static struct sample_ticker *find(struct sample_ticker *tickers, uint32_t tid)
{
    uint32_t count = atomic_load_explicit(&sample_sampler.ticker_count, memory_order_acquire);
    for (uint32_t i = 0; i < count; i++)
        if (atomic_load_explicit(&tickers[i].tid, memory_order_relaxed) == tid)
            return &tickers[i];
    return NULL;
}

void sample_ticker_is_mine(const struct sample_ticker *tickers, const struct sample_ticker *ticker)
{
    os_set_thread_word(OS_WORD_TICKER_GENERATION, 0);
    atomic_signal_fence(memory_order_seq_cst);
    if (!ticker)
        return;
    os_set_thread_word(OS_WORD_TICKER, (uintptr_t)(ticker - tickers) + 1);
    atomic_signal_fence(memory_order_seq_cst);
    os_set_thread_word(OS_WORD_TICKER_GENERATION,
                       atomic_load_explicit(&sample_sampler.generation, memory_order_relaxed));
}

struct sample_ticker *sample_ticker_self(struct sample_ticker *tickers)
{
    if (os_thread_word(OS_WORD_TICKER_GENERATION) ==
        atomic_load_explicit(&sample_sampler.generation, memory_order_relaxed)) {
        atomic_signal_fence(memory_order_seq_cst);
        return &tickers[os_thread_word(OS_WORD_TICKER) - 1];
    }
    struct sample_ticker *ticker = find(tickers, os_thread_id());
    if (ticker)
        sample_ticker_is_mine(tickers, ticker);
    return ticker;
}

// ---- all of them

static void reset(struct sample_ticker *tickers)
{
    uint32_t generation = atomic_load_explicit(&sample_sampler.generation, memory_order_relaxed) + 1;
    sample_sampler.free_ticker = 0;
    atomic_store_explicit(&sample_sampler.ticker_count, 0, memory_order_relaxed);
    atomic_store_explicit(&sample_sampler.generation, generation ? generation : 1, memory_order_relaxed);
    atomic_store_explicit(&sample_sampler.tickers, tickers, memory_order_seq_cst);
}

// A parent's, which its child goes on with: zero, as new.
static struct sample_ticker *spare;

int sample_tickers_create(void)
{
    struct sample_ticker *tickers = spare ? spare : os_reserve(POOL_BYTES);
    if (!tickers)
        return -ENOMEM;
    spare = NULL;
    reset(tickers);
    return 0;
}

void sample_tickers_hide(void)
{
    atomic_store_explicit(&sample_sampler.tickers, NULL, memory_order_seq_cst);
    enum { LOOKS_MAX = 1100, QUICK_LOOKS = 100 }; // a second: a handler may have jumped out of a guard
    for (int look = 0; look < LOOKS_MAX; look++) {
        if (atomic_load_explicit(&inside_count, memory_order_seq_cst) == 0)
            return;
        _Atomic uint32_t never = 0;
        if (look >= QUICK_LOOKS)
            os_wait(&never, 0, 1);
    }
}

// Where a thread is inside for ever, as far as one can see, they stay.
void sample_tickers_destroy(struct sample_ticker *tickers)
{
    if (atomic_load_explicit(&inside_count, memory_order_seq_cst) == 0)
        os_free_pages(tickers, POOL_BYTES);
}

void sample_tickers_in_child(void)
{
    enum { FEW = 8 }; // are cleared sooner than mapped anew
    struct sample_ticker *tickers = atomic_load_explicit(&sample_sampler.tickers, memory_order_relaxed);
    const uint32_t count = atomic_load_explicit(&sample_sampler.ticker_count, memory_order_relaxed);
    atomic_store_explicit(&sample_sampler.tickers, NULL, memory_order_relaxed);
    atomic_store_explicit(&inside_count, (uint32_t)os_thread_word(OS_WORD_TICKER_DEPTH), memory_order_relaxed);
    if (!tickers)
        return;
    if (count <= FEW && !spare && os_thread_word(OS_WORD_TICKER_DEPTH) == 0) {
        memset(tickers, 0, count * sizeof *tickers);
        spare = tickers;
    } else {
        sample_tickers_destroy(tickers);
    }
}

// ---- one of them

struct sample_ticker *sample_ticker_take(uint32_t tid)
{
    struct sample_ticker *tickers = atomic_load_explicit(&sample_sampler.tickers, memory_order_relaxed), *ticker;
    uint32_t count = atomic_load_explicit(&sample_sampler.ticker_count, memory_order_relaxed);
    if (sample_sampler.free_ticker) {
        ticker = &tickers[sample_sampler.free_ticker - 1];
        sample_sampler.free_ticker = ticker->next_free;
    } else if (count < SAMPLE_TICKERS_MAX) {
        ticker = &tickers[count];
        atomic_store_explicit(&sample_sampler.ticker_count, count + 1, memory_order_release);
    } else {
        return NULL;
    }
    atomic_store_explicit(&ticker->counts.taken, 0, memory_order_relaxed);
    atomic_store_explicit(&ticker->counts.late, 0, memory_order_relaxed);
    atomic_store_explicit(&ticker->counts.fired, 0, memory_order_relaxed);
    atomic_store_explicit(&ticker->counts.beside, 0, memory_order_relaxed);
    atomic_store_explicit(&ticker->fault_mark, -1, memory_order_relaxed);
    ticker->handler_left_ns = ticker->sample_left_ns = ticker->rests_until_ns = 0;
    ticker->seen = ticker->identity = ticker->period_ns = ticker->asked_ns = ticker->guarded_ns = 0;
    ticker->switches_seen = ticker->cpu_ns_seen = 0;
    ticker->tick_count = ticker->guard_depth = 0;
    atomic_store_explicit(&ticker->is_armed, false, memory_order_relaxed);
    ticker->is_by_timer = ticker->is_uneven = false;
    ticker->clock = ticker->faults = (struct os_event){.fd = -1, .mark = -1};
    ticker->timer = -1;
    ticker->name[0] = 0;
    atomic_store_explicit(&ticker->tid, tid, memory_order_release);
    return ticker;
}

void sample_ticker_give_back(struct sample_ticker *ticker)
{
    const struct sample_ticker *tickers = atomic_load_explicit(&sample_sampler.tickers, memory_order_relaxed);
    sample_ticker_set_by_timer(ticker, false);
    atomic_store_explicit(&ticker->tid, 0, memory_order_release);
    ticker->next_free = sample_sampler.free_ticker;
    sample_sampler.free_ticker = (uint32_t)(ticker - tickers) + 1;
}

void sample_ticker_set_by_timer(struct sample_ticker *ticker, bool by_timer)
{
    if (by_timer != ticker->is_by_timer)
        atomic_fetch_add_explicit(&sample_sampler.by_timer_count, by_timer ? 1 : UINT32_MAX, memory_order_relaxed);
    ticker->is_by_timer = by_timer;
}
