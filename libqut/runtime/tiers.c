// SPDX-License-Identifier: Apache-2.0
#include "libqut/runtime/tiers.h"

#include "libqut/runtime/walking_thread.h"

_Atomic uint32_t runtime_tiers = RUNTIME_TIERS_ALL;

bool runtime_tier_counts(struct runtime_tier_counts *counts)
{
    const struct runtime_thread *thread = runtime_thread_self();
    if (!thread)
        return false;
    *counts = thread->counts;
    counts->walks = atomic_load_explicit(&thread->walks, memory_order_relaxed);
    return true;
}

bool runtime_last_walk(struct runtime_last_walk *last)
{
    struct runtime_thread *thread = runtime_thread_self();
    // Where a walk is under way, the caller is a handler that interrupted it: its own walks were not remembered.
    if (!thread || atomic_load_explicit(&thread->walking, memory_order_relaxed) != 0)
        return false;
    return runtime_last_walk_inside(thread, last);
}

bool runtime_last_walk_inside(const struct runtime_thread *thread, struct runtime_last_walk *last)
{
    struct runtime_memo *memo = (struct runtime_memo *)&thread->memo;
    if (!memo->contiguous)
        return false;
    *last = (struct runtime_last_walk){
        .frame_count = RUNTIME_MEMO_CAPACITY - memo->good,
        .kept_count = RUNTIME_MEMO_CAPACITY - memo->kept_from,
        .frames = &memo->frames[memo->good],
    };
    return true;
}

void runtime_last_walk_forget(struct runtime_thread *thread)
{
    for (size_t i = 0; i <= RUNTIME_MEMO_CAPACITY; i++)
        thread->memo.frames[i].node = 0;
}

uint32_t *runtime_last_walk_node(const struct runtime_last_walk *last, size_t frame)
{
    return &last->frames[frame].node;
}
