// SPDX-License-Identifier: Apache-2.0
// Counting how walks end.
#ifndef QUT_MODULES_END_COUNTS_INLINE_H
#define QUT_MODULES_END_COUNTS_INLINE_H

#include "libqut/runtime/walking_thread.h"

// Those of threads that are not registered.
extern _Atomic uintptr_t modules_unregistered_ends[QUT_END_REASON_COUNT];

// Signal-safe; no count is lost. Cheapest between modules_enter and modules_leave of a thread's outermost walk:
// then whatever interrupts it counts elsewhere.
static inline void modules_stats_count_end(uint32_t reason)
{
    struct runtime_thread *thread = runtime_thread_self();
    if (reason >= QUT_END_REASON_COUNT)
        return;
    if (thread && atomic_load_explicit(&thread->walking, memory_order_relaxed) == 1) {
        uintptr_t count = atomic_load_explicit(&thread->ends[reason], memory_order_relaxed);
        atomic_store_explicit(&thread->ends[reason], count + 1, memory_order_relaxed);
        return;
    }
    atomic_fetch_add_explicit(thread ? &thread->nested_ends[reason] : &modules_unregistered_ends[reason], 1,
                              memory_order_relaxed);
}

#endif
