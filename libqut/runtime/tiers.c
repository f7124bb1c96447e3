// SPDX-License-Identifier: Apache-2.0
#include "libqut/runtime/tiers.h"

#include "libqut/runtime/thread.h"

_Atomic uint32_t qut_tiers = QUT_TIERS_ALL;

bool qut_tier_counts(struct qut_tier_counts *counts)
{
    const struct qut_thread *thread = qut_thread_self();
    if (!thread)
        return false;
    *counts = thread->counts;
    counts->walks = atomic_load_explicit(&thread->walks, memory_order_relaxed);
    return true;
}

bool qut_last_walk(struct qut_last_walk *last)
{
    struct qut_thread *thread = qut_thread_self();
    // Where a walk is under way, the caller is a handler that interrupted it: its own walks were not remembered.
    if (!thread || atomic_load_explicit(&thread->walking, memory_order_relaxed) != 0)
        return false;
    return qut_last_walk_inside(thread, last);
}

bool qut_last_walk_inside(const struct qut_thread *thread, struct qut_last_walk *last)
{
    struct qut_memo *memo = (struct qut_memo *)&thread->memo;
    if (!memo->contiguous)
        return false;
    *last = (struct qut_last_walk){
        .frame_count = QUT_MEMO_CAPACITY - memo->good,
        .kept_count = QUT_MEMO_CAPACITY - memo->kept_from,
        .frames = &memo->frames[memo->good],
    };
    return true;
}

void qut_last_walk_forget(struct qut_thread *thread)
{
    for (size_t i = 0; i <= QUT_MEMO_CAPACITY; i++)
        thread->memo.frames[i].node = 0;
}

uint32_t *qut_last_walk_node(const struct qut_last_walk *last, size_t frame)
{
    return &last->frames[frame].node;
}
