// SPDX-License-Identifier: Apache-2.0
// A part of backtrace.c: the whole of a walk whose stack is what it was at the thread's last one. Such a walk is bound
// by how many instructions it has, and most of these were for finding out how to begin: what is known at the end of a
// walk is found out there (runtime_thread.same_epoch).
#ifndef QUT_WALK_SAME_WALK_INLINE_H
#define QUT_WALK_SAME_WALK_INLINE_H

#include "libqut/runtime/memo_follow_inline.h"
#include "libqut/walk/walk_ends_inline.h"

// How a walk comes to the frame where it begins.
static inline struct runtime_link_step first_step(const void *ucontext)
{
    return (struct runtime_link_step){RUNTIME_MEMO_OTHER, ucontext ? RUNTIME_MEMO_EXACT : 0};
}

// At the end of an outermost walk: whether the next one can begin by looking whether all is as it was.
static inline void offer_same_walk(struct runtime_thread *thread)
{
    const struct runtime_memo *memo = &thread->memo;
    bool is_offered = memo->good < RUNTIME_MEMO_CAPACITY && memo->pause == 0 && thread->begin == RUNTIME_BEGIN_FAST;
    thread->same_epoch = is_offered ? thread->links.epoch : 0;
}

// At the beginning of an outermost walk, behind modules_enter.
static inline bool may_be_same(const struct runtime_thread *thread, const struct modules *modules)
{
    uint32_t without = ~atomic_load_explicit(&runtime_tiers, memory_order_relaxed);
    return modules && thread->same_epoch == modules->epoch && !(without & (RUNTIME_TIER_LINKED | RUNTIME_TIER_MEMO)) &&
           modules_up_to_date(modules);
}

// How many frames were given out: all, or as many as there is room for. 0: not all of these is as it was; f->followed
// says how far it is. That the stack can be read from sp on needs no proof: it could when this sp was remembered, and
// is in use.
static inline __attribute__((always_inline)) size_t walk_same(struct runtime_fast *f)
{
    struct runtime_thread *thread = f->thread;
    struct runtime_memo *memo = &thread->memo;
    const struct runtime_memo_frame *first = &memo->frames[memo->good];
    if (!runtime_memo_is_state(first, f->sp, f->ra, f->fp, first_step(f->ucontext)))
        return 0;
    const size_t steps_known = RUNTIME_MEMO_CAPACITY - 1 - memo->good;
    size_t steps = steps_known;
    if (f->max <= steps_known) {
        if (f->max == 0)
            return 0;
        steps = f->max - 1;
    }
    f->pcs[0] = f->key - 1;
    const struct runtime_memo_frame *end = first + steps;
    const struct runtime_memo_frame *frame = first;
    if (memo->run_end)
        frame = runtime_memo_follow_run(memo, first, end, f->pcs + 1);
    else
        runtime_memo_know_run(memo);
    f->followed = runtime_memo_follow_inline(frame, end, f->pcs + 1 + (frame - first));
    if (f->followed != end)
        return 0;
    enum qut_end_reason reason = QUT_END_OUTERMOST;
    uintptr_t end_key = arch_native_key(end->ra);
    if (steps != steps_known) {
        if (!runtime_memo_holds(end + 1))
            return 0;
        reason = QUT_END_LIMIT;
        end_key = arch_native_key(end[1].ra);
    } else if (!memo->complete) {
        return 0;
    } else if (steps == 0 && f->ucontext) {
        end_key = f->key - 1; // of no other frame can the pc be an interrupted one
    }
    memo->kept_from = memo->good;
    memo->contiguous = steps == steps_known;
    runtime_memo_is_worth_it(memo);
    if (f->end)
        set_end(f->end, reason, end_key, QUT_NO_GUESS);
    const size_t count = steps + 1;
    count_walk(thread, reason, count, count, 0);
    return count;
}

#endif
