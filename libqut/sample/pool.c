// SPDX-License-Identifier: Apache-2.0
// The places of threads that tick. A place is found by two words of the thread's own, and the first time by its number:
// threads that were given ticks by others have no words yet.
#include <errno.h>

#include "libqut/sample/sampling.h"

struct qut_sampler qut_sampler;
static _Atomic uint32_t inside_count; // of those between enter and leave

enum { POOL_BYTES = QUT_TICKERS_MAX * (int)sizeof(struct qut_ticker) };

uint64_t qut_sampler_lock(void)
{
    uint64_t blocked = qut_os_block_signals();
    qut_os_lock(&qut_sampler.lock);
    return blocked;
}

void qut_sampler_unlock(uint64_t blocked)
{
    qut_os_unlock(&qut_sampler.lock);
    qut_os_restore_signals(blocked);
}

// ---- who looks at them

// Who hides them takes the pointer away, then looks at the count: each side's store comes before its load.
struct qut_ticker *qut_tickers_enter(void)
{
    atomic_fetch_add_explicit(&inside_count, 1, memory_order_seq_cst);
    qut_os_set_thread_word(QUT_OS_WORD_TICKER_DEPTH, qut_os_thread_word(QUT_OS_WORD_TICKER_DEPTH) + 1);
    return atomic_load_explicit(&qut_sampler.tickers, memory_order_seq_cst);
}

void qut_tickers_leave(void)
{
    qut_os_set_thread_word(QUT_OS_WORD_TICKER_DEPTH, qut_os_thread_word(QUT_OS_WORD_TICKER_DEPTH) - 1);
    atomic_fetch_sub_explicit(&inside_count, 1, memory_order_release);
}

static struct qut_ticker *find(struct qut_ticker *tickers, uint32_t tid)
{
    uint32_t count = atomic_load_explicit(&qut_sampler.ticker_count, memory_order_acquire);
    for (uint32_t i = 0; i < count; i++)
        if (atomic_load_explicit(&tickers[i].tid, memory_order_relaxed) == tid)
            return &tickers[i];
    return NULL;
}

void qut_ticker_is_mine(const struct qut_ticker *tickers, const struct qut_ticker *ticker)
{
    qut_os_set_thread_word(QUT_OS_WORD_TICKER_GENERATION, 0);
    atomic_signal_fence(memory_order_seq_cst);
    if (!ticker)
        return;
    qut_os_set_thread_word(QUT_OS_WORD_TICKER, (uintptr_t)(ticker - tickers) + 1);
    atomic_signal_fence(memory_order_seq_cst);
    qut_os_set_thread_word(QUT_OS_WORD_TICKER_GENERATION,
                           atomic_load_explicit(&qut_sampler.generation, memory_order_relaxed));
}

struct qut_ticker *qut_ticker_self(struct qut_ticker *tickers)
{
    if (qut_os_thread_word(QUT_OS_WORD_TICKER_GENERATION) ==
        atomic_load_explicit(&qut_sampler.generation, memory_order_relaxed)) {
        atomic_signal_fence(memory_order_seq_cst);
        return &tickers[qut_os_thread_word(QUT_OS_WORD_TICKER) - 1];
    }
    struct qut_ticker *ticker = find(tickers, qut_os_thread_id());
    if (ticker)
        qut_ticker_is_mine(tickers, ticker);
    return ticker;
}

// ---- all of them

static void reset(struct qut_ticker *tickers)
{
    uint32_t generation = atomic_load_explicit(&qut_sampler.generation, memory_order_relaxed) + 1;
    qut_sampler.free_ticker = 0;
    atomic_store_explicit(&qut_sampler.ticker_count, 0, memory_order_relaxed);
    atomic_store_explicit(&qut_sampler.generation, generation ? generation : 1, memory_order_relaxed);
    atomic_store_explicit(&qut_sampler.tickers, tickers, memory_order_seq_cst);
}

int qut_tickers_create(void)
{
    struct qut_ticker *tickers = qut_os_reserve(POOL_BYTES);
    if (!tickers)
        return -ENOMEM;
    reset(tickers);
    return 0;
}

void qut_tickers_hide(void)
{
    atomic_store_explicit(&qut_sampler.tickers, NULL, memory_order_seq_cst);
    enum { LOOKS_MAX = 1100, QUICK_LOOKS = 100 }; // a second: a handler may have jumped out of a guard
    for (int look = 0; look < LOOKS_MAX; look++) {
        if (atomic_load_explicit(&inside_count, memory_order_seq_cst) == 0)
            return;
        _Atomic uint32_t never = 0;
        if (look >= QUICK_LOOKS)
            qut_os_wait(&never, 0, 1);
    }
}

// Where somebody is inside for ever, as far as one can see, they stay.
void qut_tickers_destroy(struct qut_ticker *tickers)
{
    if (atomic_load_explicit(&inside_count, memory_order_seq_cst) == 0)
        qut_os_free_pages(tickers, POOL_BYTES);
}

void qut_tickers_in_child(void)
{
    atomic_store_explicit(&qut_sampler.tickers, NULL, memory_order_relaxed);
    atomic_store_explicit(&inside_count, (uint32_t)qut_os_thread_word(QUT_OS_WORD_TICKER_DEPTH), memory_order_relaxed);
}

// ---- one of them

struct qut_ticker *qut_ticker_take(uint32_t tid)
{
    struct qut_ticker *tickers = atomic_load_explicit(&qut_sampler.tickers, memory_order_relaxed), *ticker;
    uint32_t count = atomic_load_explicit(&qut_sampler.ticker_count, memory_order_relaxed);
    if (qut_sampler.free_ticker) {
        ticker = &tickers[qut_sampler.free_ticker - 1];
        qut_sampler.free_ticker = ticker->next_free;
    } else if (count < QUT_TICKERS_MAX) {
        ticker = &tickers[count];
        atomic_store_explicit(&qut_sampler.ticker_count, count + 1, memory_order_release);
    } else {
        return NULL;
    }
    atomic_store_explicit(&ticker->counts.taken, 0, memory_order_relaxed);
    atomic_store_explicit(&ticker->counts.late, 0, memory_order_relaxed);
    atomic_store_explicit(&ticker->counts.fired, 0, memory_order_relaxed);
    atomic_store_explicit(&ticker->fault_mark, -1, memory_order_relaxed);
    ticker->seen = ticker->identity = ticker->period_ns = ticker->guarded_ns = 0;
    ticker->switches_seen = ticker->cpu_ns_seen = 0;
    ticker->tick_count = ticker->guard_depth = 0;
    ticker->is_armed = ticker->is_by_timer = false;
    ticker->clock = ticker->faults = (struct qut_os_event){.fd = -1, .mark = -1};
    ticker->timer = -1;
    ticker->name[0] = 0;
    atomic_store_explicit(&ticker->tid, tid, memory_order_release);
    return ticker;
}

void qut_ticker_give_back(struct qut_ticker *ticker)
{
    const struct qut_ticker *tickers = atomic_load_explicit(&qut_sampler.tickers, memory_order_relaxed);
    qut_switches_forget(ticker);
    atomic_store_explicit(&ticker->tid, 0, memory_order_release);
    ticker->next_free = qut_sampler.free_ticker;
    qut_sampler.free_ticker = (uint32_t)(ticker - tickers) + 1;
}
