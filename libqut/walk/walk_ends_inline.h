// SPDX-License-Identifier: Apache-2.0
// A part of backtrace.c and slow_walk.c: what is said and counted of a walk that has ended.
#ifndef QUT_WALK_WALK_ENDS_INLINE_H
#define QUT_WALK_WALK_ENDS_INLINE_H

#include "libqut/walk/walk_fast.h"

static inline void set_end(struct qut_end *end, enum qut_end_reason reason, uintptr_t pc, uint32_t guessed_frame)
{
    end->reason = reason;
    end->refusal = 0;
    end->pc = pc;
    end->address = 0;
    end->guessed_frame = guessed_frame;
    end->zero = 0;
}

// A walk that the fast ways have brought to its end. Only where no frame was left yet can the pc be an interrupted one.
static inline enum qut_end_reason end_fast(const struct runtime_fast *f, enum qut_stop stop, uint32_t guessed_frame)
{
    bool is_exact = f->ucontext && f->count <= (stop == WALK_STOP_END);
    enum qut_end_reason reason = stop == WALK_STOP_END ? QUT_END_OUTERMOST : QUT_END_LIMIT;
    if (f->end)
        set_end(f->end, reason, is_exact ? f->key - 1 : f->key, guessed_frame);
    return reason;
}

// Of the thread's outermost walk, so that no other walk counts at the same time.
static inline void count_walk(struct runtime_thread *thread, enum qut_end_reason reason, size_t frame_count,
                              size_t remembered_count, size_t slow_count)
{
    uintptr_t ended = atomic_load_explicit(&thread->ends[reason], memory_order_relaxed);
    atomic_store_explicit(&thread->ends[reason], ended + 1, memory_order_relaxed);
    thread->counts.frames += frame_count;
    thread->counts.remembered += remembered_count;
    thread->counts.looked_up += slow_count;
}

// Of a walk that was not remembered as a whole.
static inline void end_memo(struct runtime_fast *f, enum qut_stop stop, enum qut_end_reason reason)
{
    struct runtime_memo *memo = &f->thread->memo;
    bool is_used = f->remember != RUNTIME_REMEMBER_NOT;
    walk_fast_end(f, stop);
    memo->contiguous = is_used && memo->contiguous && reason == QUT_END_OUTERMOST;
    if (is_used && !f->is_stubborn)
        runtime_memo_judge(memo, f->count, f->remembered_count);
}

#endif
