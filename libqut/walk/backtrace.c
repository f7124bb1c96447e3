// SPDX-License-Identifier: Apache-2.0
// A whole walk of the calling thread: what the thread remembers, if that is all (same_walk_inline.h); the fast ways as
// far as they go (walk_fast.h), then the slow one (slow_walk.h), which leaves signal frames, frames with rarer rules or
// none, and those of stacks that are not the thread's own; then the fast ones again.
#include <qut/local.h>

#include "libqut/walk/interrupted_method.h"
#include "libqut/walk/same_walk_inline.h"
#include "libqut/walk/slow_walk.h"
#include "libqut/walk/walk_local.h"

// Not static, as one of these ends by a call of the next: the calling convention is then the same for all, so that each
// can leave the stack before. (On i386 a static function has its arguments in registers.)
#pragma GCC visibility push(hidden)
size_t walk_same_captured(uintptr_t *pcs, size_t max, struct qut_end *end, const struct arch_capture *capture);
size_t walk_other_captured(uintptr_t *pcs, size_t max, struct qut_end *end, const struct arch_capture *capture);
size_t walk_same_context(const void *ucontext, uintptr_t *pcs, size_t max, struct qut_end *end);
size_t walk_other_context(const void *ucontext, uintptr_t *pcs, size_t max, struct qut_end *end);
size_t walk_begin_noted(struct walk_noted_walk *notes, const struct arch_capture *capture, const void *ucontext);
size_t walk_run(struct runtime_fast *f);
#pragma GCC visibility pop

// Whether the fast ways can be taken at all.
static inline bool begin_fast(struct runtime_fast *f, uintptr_t here)
{
    struct runtime_thread *thread = f->thread;
    uint32_t tiers = atomic_load_explicit(&runtime_tiers, memory_order_relaxed);
    if (!f->modules || f->key == 0 || !(tiers & RUNTIME_TIER_LINKED) || !walk_local_on_own_stack(thread, f->sp, here) ||
        !(f->is_current || modules_up_to_date(f->modules)))
        return false;
    if (__builtin_expect(thread->links.epoch != f->modules->epoch, 0)) {
        runtime_link_cache_restart(&thread->links, f->modules->epoch);
        runtime_memo_restart(&thread->memo);
        runtime_near_forget(&thread->near);
    }
    f->is_stubborn = tiers & RUNTIME_TIER_STUBBORN;
    if ((tiers & RUNTIME_TIER_MEMO) && runtime_memo_is_wanted(&thread->memo, f->is_stubborn))
        f->remember = RUNTIME_REMEMBER;
    return true;
}

// The frame where the walk begins is where the last one began. True: all that is given out is what it was.
static inline bool run_as_remembered(struct runtime_fast *f, struct runtime_link_step step, enum qut_stop *stop)
{
    struct runtime_memo *memo = &f->thread->memo;
    const struct runtime_memo_frame *first = &memo->frames[memo->good];
    if (!f->followed && (f->max == 0 || !runtime_memo_is_state(first, f->sp, f->ra, f->fp, step))) {
        runtime_memo_start(memo, memo->good, RUNTIME_MEMO_CAPACITY);
        return false;
    }
    const struct runtime_memo_frame *from = f->followed ? f->followed : first, *frame;
    f->pcs[0] = f->key - 1;
    f->remembered_count = (size_t)(from - first);
    f->count = f->remembered_count + 1;
    bool has_stopped = walk_fast_follow(f, memo, first, from, stop, &frame);
    if (has_stopped) {
        memo->kept_from = memo->good;
        memo->contiguous = *stop == WALK_STOP_END;
        runtime_memo_is_worth_it(memo);
    } else {
        runtime_memo_start(memo, (uint32_t)(frame + 1 - memo->frames), memo->good);
        f->is_given = true;
    }
    return has_stopped;
}

// A walk that is not the same as the one before. f is the thread's.
__attribute__((noinline)) size_t walk_run(struct runtime_fast *f)
{
    f->is_slow = !begin_fast(f, (uintptr_t)__builtin_frame_address(0));
    if (f->is_slow)
        return walk_slowly_from(f);
    struct runtime_thread *thread = f->thread;
    struct runtime_link_step step = first_step(f->ucontext);
    runtime_memo_forget_run(&thread->memo);
    if (__builtin_expect(thread->begin != RUNTIME_BEGIN_FAST, 0)) {
        f->remember = RUNTIME_REMEMBER_NOT;
        return walk_slowly_from(f);
    }
    enum qut_stop stop;
    if (f->remember != RUNTIME_REMEMBER || !run_as_remembered(f, step, &stop)) {
        thread->first_link.step = step;
        stop = walk_fast_run(f);
        if (stop == WALK_STOP_STUCK && f->ucontext && f->count == 1 && walk_leave_interrupted_method(f))
            stop = walk_fast_run(f);
        while (stop == WALK_STOP_STUCK && !f->notes && f->count > 1 &&
               walk_seen_pass(f, (uintptr_t)__builtin_frame_address(0)))
            stop = walk_fast_run(f);
        if (stop == WALK_STOP_STUCK)
            return walk_slowly_from(f);
        end_memo(f, stop, stop == WALK_STOP_END ? QUT_END_OUTERMOST : QUT_END_LIMIT);
        offer_same_walk(thread);
    }
    size_t count = f->count;
    count_walk(thread, end_fast(f, stop, QUT_NO_GUESS), count, f->remembered_count, 0);
    if (!f->notes)
        modules_leave_outermost(thread);
    return count;
}

// Whether the walk that has begun is the thread's outermost one.
static inline bool is_outermost(const struct runtime_thread *thread)
{
    return thread && atomic_load_explicit(&thread->walking, memory_order_relaxed) == 1;
}

// An outermost one. With notes, its mark is its caller's. The list of modules may be another one than was asked whether
// the walk may be the same: epochs tell.
static inline __attribute__((always_inline)) size_t begin(struct runtime_fast f, bool can_be_same)
{
    f.thread = runtime_thread_self();
    f.modules = f.notes ? f.notes->modules : atomic_load_explicit(&modules_current, memory_order_seq_cst);
    f.is_current = can_be_same && f.modules && f.modules->epoch == f.thread->same_epoch;
    size_t count = f.is_current ? walk_same(&f) : 0;
    if (count) {
        if (!f.notes)
            modules_leave_outermost(f.thread);
        return count;
    }
    f.thread->fast = f;
    return walk_run(&f.thread->fast);
}

static inline __attribute__((always_inline)) struct runtime_fast
at_capture(const struct arch_capture *capture, uintptr_t *pcs, size_t max, struct qut_end *end)
{
    return (struct runtime_fast){
        .capture = capture,
        .end = end,
        .pcs = pcs,
        .max = max,
        .sp = capture->sp,
        .fp = capture->tracked[ARCH_NATIVE_FP_SLOT],
        .ra = capture->pc,
        .key = arch_native_key(capture->pc),
    };
}

static inline __attribute__((always_inline)) struct runtime_fast at_context(const void *ucontext, uintptr_t *pcs,
                                                                            size_t max, struct qut_end *end)
{
    const struct arch_register_layout *layout = arch_native_arch.ucontext_registers;
    uintptr_t block = (uintptr_t)ucontext, pc = os_load(block + layout->pc_offset);
    return (struct runtime_fast){
        .ucontext = ucontext,
        .end = end,
        .pcs = pcs,
        .max = max,
        .sp = os_load(block + layout->reg_offset[arch_native_arch.sp_reg]),
        .fp = os_load(block + layout->reg_offset[arch_native_arch.tracked[ARCH_NATIVE_FP_SLOT]]),
        .ra = pc,
        .key = arch_native_key(pc) + 1,
    };
}

// The parts that begin are functions of their own: what they keep does not lie on the stack beneath a slow walk's.
// Those for walks that are others, which is known at once, keep nothing.
__attribute__((noinline)) size_t walk_same_captured(uintptr_t *pcs, size_t max, struct qut_end *end,
                                                    const struct arch_capture *capture)
{
    return begin(at_capture(capture, pcs, max, end), true);
}

__attribute__((noinline)) size_t walk_other_captured(uintptr_t *pcs, size_t max, struct qut_end *end,
                                                     const struct arch_capture *capture)
{
    return begin(at_capture(capture, pcs, max, end), false);
}

// capture.S calls it.
size_t walk_backtrace_captured(uintptr_t *pcs, size_t max, struct qut_end *end, const struct arch_capture *capture);

size_t walk_backtrace_captured(uintptr_t *pcs, size_t max, struct qut_end *end, const struct arch_capture *capture)
{
    struct runtime_thread *thread = runtime_thread_self();
    const struct modules *modules = modules_enter(thread);
    if (!is_outermost(thread))
        return walk_slowly_captured(pcs, max, end, capture);
    return may_be_same(thread, modules) ? walk_same_captured(pcs, max, end, capture)
                                        : walk_other_captured(pcs, max, end, capture);
}

// The rule of the interrupted frame comes from a table, mostly.
static inline void expect(const struct runtime_thread *thread, const void *ucontext)
{
    runtime_near_expect(&thread->near, os_load((uintptr_t)ucontext + arch_native_arch.ucontext_registers->pc_offset));
}

__attribute__((noinline)) size_t walk_same_context(const void *ucontext, uintptr_t *pcs, size_t max,
                                                   struct qut_end *end)
{
    return begin(at_context(ucontext, pcs, max, end), true);
}

__attribute__((noinline)) size_t walk_other_context(const void *ucontext, uintptr_t *pcs, size_t max,
                                                    struct qut_end *end)
{
    return begin(at_context(ucontext, pcs, max, end), false);
}

size_t qut_backtrace_context(const void *ucontext, uintptr_t *pcs, size_t max, struct qut_end *end)
{
    struct runtime_thread *thread = runtime_thread_self();
    const struct modules *modules = modules_enter(thread);
    if (!is_outermost(thread))
        return walk_slowly_context(ucontext, pcs, max, end);
    expect(thread, ucontext);
    return may_be_same(thread, modules) ? walk_same_context(ucontext, pcs, max, end)
                                        : walk_other_context(ucontext, pcs, max, end);
}

__attribute__((noinline)) size_t walk_begin_noted(struct walk_noted_walk *notes, const struct arch_capture *capture,
                                                  const void *ucontext)
{
    struct runtime_fast f = ucontext ? at_context(ucontext, notes->pcs, notes->max, &notes->end)
                                     : at_capture(capture, notes->pcs, notes->max, &notes->end);
    f.notes = notes;
    return begin(f, may_be_same(runtime_thread_self(), notes->modules));
}

size_t walk_take_notes(struct walk_noted_walk *notes, const struct arch_capture *capture, const void *ucontext)
{
    struct runtime_thread *thread = runtime_thread_self();
    notes->noted_count = 0;
    if (!is_outermost(thread))
        return walk_slowly_noted(notes, ucontext ? NULL : capture, ucontext);
    if (ucontext)
        expect(thread, ucontext);
    return walk_begin_noted(notes, capture, ucontext);
}
