// SPDX-License-Identifier: Apache-2.0
// Threads that come and go.
#include <errno.h>
#include <string.h>

#include "libqut/runtime/walking_thread.h"
#include "libqut/sample/inside.h"

static struct sample_ticker *all(void)
{
    return atomic_load_explicit(&sample_sampler.tickers, memory_order_relaxed);
}

static struct sample_ticker *find(uint32_t tid)
{
    struct sample_ticker *tickers = all();
    uint32_t count = atomic_load_explicit(&sample_sampler.ticker_count, memory_order_relaxed);
    for (uint32_t i = 0; tickers && i < count; i++)
        if (atomic_load_explicit(&tickers[i].tid, memory_order_relaxed) == tid)
            return &tickers[i];
    return NULL;
}

static void drop(struct sample_ticker *ticker)
{
    sample_ticker_disarm(ticker);
    sample_ticker_give_back(ticker);
    atomic_fetch_sub_explicit(&sample_sampler.threads, 1, memory_order_relaxed);
}

// 0, or -errno: then it has no place.
static int add(uint32_t tid, uint64_t identity, const char *name)
{
    struct sample_ticker *ticker = sample_ticker_take(tid);
    if (!ticker) {
        atomic_fetch_add_explicit(&sample_sampler.threads_failed, 1, memory_order_relaxed);
        return -EAGAIN;
    }
    ticker->identity = identity;
    strncpy(ticker->name, name, sizeof ticker->name - 1);
    if (identity == 0)
        sample_ticker_is_mine(all(), ticker);
    uint64_t period_ns = sample_pace_of(tid, name);
    sample_switches_begin(ticker, period_ns);
    int result = sample_ticker_arm(ticker, period_ns);
    atomic_fetch_add_explicit(&sample_sampler.threads, 1, memory_order_relaxed);
    if (result != 0) {
        if (identity == 0)
            sample_ticker_is_mine(all(), NULL);
        drop(ticker);
        atomic_fetch_add_explicit(&sample_sampler.threads_failed, 1, memory_order_relaxed);
    }
    return result;
}

// ---- the calling one

int sample_thread_begin_ticks(void)
{
    char name[OS_NAME_BYTES] = "";
    uint32_t tid = os_thread_id();
    struct sample_ticker *ticker = find(tid);
    if (ticker && ticker->identity == 0)
        return 0;
    if (ticker) // it was adopted; or another one was, which had that number
        drop(ticker);
    os_own_thread_name(name);
    return add(tid, 0, name);
}

int qut_sampling_thread_begin(void)
{
    int result = qut_trace_thread_register();
    if (result != 0)
        return result;
    uint64_t blocked = sampler_lock();
    bool is_started = sample_sampler.is_started;
    if (is_started && all()) {
        result = sample_thread_begin_ticks();
        int signal_number = atomic_load_explicit(&sample_sampler.signal_number, memory_order_relaxed);
        if (signal_number) // what was blocked is blocked again, but for that
            blocked &= ~((uint64_t)1 << (signal_number - 1));
    }
    sampler_unlock(blocked);
    return is_started ? result : -EINVAL;
}

void qut_sampling_thread_end(void)
{
    uint64_t blocked = sampler_lock();
    struct sample_ticker *ticker = find(os_thread_id());
    if (ticker) {
        sample_ticker_is_mine(all(), NULL);
        drop(ticker);
    }
    sampler_unlock(blocked);
}

void sample_thread_end_hook(void)
{
    if (all())
        qut_sampling_thread_end();
}

// ---- others

struct adoption {
    uint64_t generation; // differs in each call
    uint32_t own_tid;    // the caller can ask for itself
    int added_count;
};

static void adopt(void *context, uint32_t tid, uint64_t identity)
{
    struct adoption *adoption = context;
    struct sample_ticker *ticker = find(tid);
    if (ticker && ticker->identity != 0 && ticker->identity != identity) {
        drop(ticker); // of a thread that had that number before
        ticker = NULL;
    }
    if (!ticker && tid != adoption->own_tid) {
        char name[OS_NAME_BYTES] = "";
        os_thread_name(tid, name);
        if (strcmp(name, "qut") == 0) // libqut's own, which blocks all signals
            return;
        adoption->added_count += add(tid, identity, name) == 0;
        ticker = find(tid);
    }
    if (ticker)
        ticker->seen = adoption->generation;
}

static void drop_unseen(uint64_t generation)
{
    struct sample_ticker *tickers = all();
    uint32_t count = atomic_load_explicit(&sample_sampler.ticker_count, memory_order_relaxed);
    for (uint32_t i = 0; i < count; i++)
        if (atomic_load_explicit(&tickers[i].tid, memory_order_relaxed) && tickers[i].seen != generation)
            drop(&tickers[i]);
}

int qut_sampling_adopt_threads(void)
{
    static uint64_t generation;
    uint64_t blocked = sampler_lock();
    struct adoption adoption = {++generation, os_thread_id(), 0};
    int result = -EINVAL;
    if (sample_sampler.is_started)
        result = all() ? os_each_task(adopt, &adoption) : 0;
    if (result == 0 && all())
        drop_unseen(generation);
    sampler_unlock(blocked);
    return result == 0 ? adoption.added_count : result;
}
