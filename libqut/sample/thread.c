// SPDX-License-Identifier: Apache-2.0
// Threads that come and go.
#include <errno.h>
#include <string.h>

#include "libqut/runtime/thread.h"
#include "libqut/sample/sampling.h"

static struct qut_ticker *all(void)
{
    return atomic_load_explicit(&qut_sampler.tickers, memory_order_relaxed);
}

static struct qut_ticker *find(uint32_t tid)
{
    struct qut_ticker *tickers = all();
    uint32_t count = atomic_load_explicit(&qut_sampler.ticker_count, memory_order_relaxed);
    for (uint32_t i = 0; tickers && i < count; i++)
        if (atomic_load_explicit(&tickers[i].tid, memory_order_relaxed) == tid)
            return &tickers[i];
    return NULL;
}

static void drop(struct qut_ticker *ticker)
{
    qut_ticker_disarm(ticker);
    qut_ticker_give_back(ticker);
    atomic_fetch_sub_explicit(&qut_sampler.threads, 1, memory_order_relaxed);
}

// 0, or -errno: then it has no place.
static int add(uint32_t tid, uint64_t identity, const char *name)
{
    struct qut_ticker *ticker = qut_ticker_take(tid);
    if (!ticker) {
        atomic_fetch_add_explicit(&qut_sampler.threads_failed, 1, memory_order_relaxed);
        return -EAGAIN;
    }
    ticker->identity = identity;
    strncpy(ticker->name, name, sizeof ticker->name - 1);
    if (identity == 0)
        qut_ticker_is_mine(all(), ticker);
    uint64_t period_ns = qut_pace_of(tid, name);
    qut_switches_begin(ticker, period_ns);
    int result = qut_ticker_arm(ticker, period_ns);
    atomic_fetch_add_explicit(&qut_sampler.threads, 1, memory_order_relaxed);
    if (result != 0) {
        if (identity == 0)
            qut_ticker_is_mine(all(), NULL);
        drop(ticker);
        atomic_fetch_add_explicit(&qut_sampler.threads_failed, 1, memory_order_relaxed);
    }
    return result;
}

// ---- the calling one

int qut_thread_begin_ticks(void)
{
    char name[QUT_OS_NAME_BYTES] = "";
    uint32_t tid = qut_os_thread_id();
    struct qut_ticker *ticker = find(tid);
    if (ticker && ticker->identity == 0)
        return 0;
    if (ticker) // it was adopted; or another one was, which had that number
        drop(ticker);
    qut_os_own_thread_name(name);
    return add(tid, 0, name);
}

int qut_sampling_thread_begin(void)
{
    int result = qut_trace_thread_register();
    if (result != 0)
        return result;
    uint64_t blocked = qut_sampler_lock();
    bool is_started = qut_sampler.is_started;
    if (is_started && all()) {
        result = qut_thread_begin_ticks();
        int signal_number = atomic_load_explicit(&qut_sampler.signal_number, memory_order_relaxed);
        if (signal_number) // what was blocked is blocked again, but for that
            blocked &= ~((uint64_t)1 << (signal_number - 1));
    }
    qut_sampler_unlock(blocked);
    return is_started ? result : -EINVAL;
}

void qut_sampling_thread_end(void)
{
    uint64_t blocked = qut_sampler_lock();
    struct qut_ticker *ticker = find(qut_os_thread_id());
    if (ticker) {
        qut_ticker_is_mine(all(), NULL);
        drop(ticker);
    }
    qut_sampler_unlock(blocked);
}

void qut_thread_end_hook(void)
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
    struct qut_ticker *ticker = find(tid);
    if (ticker && ticker->identity != 0 && ticker->identity != identity) {
        drop(ticker); // of a thread that had that number before
        ticker = NULL;
    }
    if (!ticker && tid != adoption->own_tid) {
        char name[QUT_OS_NAME_BYTES] = "";
        qut_os_thread_name(tid, name);
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
    struct qut_ticker *tickers = all();
    uint32_t count = atomic_load_explicit(&qut_sampler.ticker_count, memory_order_relaxed);
    for (uint32_t i = 0; i < count; i++)
        if (atomic_load_explicit(&tickers[i].tid, memory_order_relaxed) && tickers[i].seen != generation)
            drop(&tickers[i]);
}

int qut_sampling_adopt_threads(void)
{
    static uint64_t generation;
    uint64_t blocked = qut_sampler_lock();
    struct adoption adoption = {++generation, qut_os_thread_id(), 0};
    int result = -EINVAL;
    if (qut_sampler.is_started)
        result = all() ? qut_os_each_task(adopt, &adoption) : 0;
    if (result == 0 && all())
        drop_unseen(generation);
    qut_sampler_unlock(blocked);
    return result == 0 ? adoption.added_count : result;
}
