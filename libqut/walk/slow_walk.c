// SPDX-License-Identifier: Apache-2.0
#include "libqut/walk/slow_walk.h"

#include "libqut/modules/end_counts_inline.h"
#include "libqut/walk/made_frames.h"
#include "libqut/walk/same_walk_inline.h"
#include "libqut/walk/walk_local.h"

// The slow way's own state. As little as can be: where a thread has no place for it, all of this stands on the stack of
// the code that is interrupted.
struct backtrace {
    struct runtime_fast *fast; // NULL: only the slow way is taken
    uintptr_t *pcs;
    size_t max, count;
    uint32_t slow_count;           // of the frames given out: classified anew
    uint8_t left_count;            // left by the slow way, by whatever it knows; 255: or more
    uint8_t followed_count;        // found by the trail
    bool was_exchanged : 1;        // what led to the frame the walk is at was no frame; it is not given out yet
    bool forgot : 1;               // registers but pc, sp and fp
    bool was_known : 1;            // the rule that led to the frame the walk is at
    uintptr_t here;                // an address on the running stack
    struct walk_noted_walk *notes; // NULL: it is not asked what frames are
    struct runtime_walk walk;
    struct walk_local local;
};

// ---- slowly

static void begin_slowly(struct backtrace *b, const struct arch_capture *capture, const void *ucontext)
{
    if (capture)
        walk_local_begin_at_capture(&b->walk, capture);
    else
        walk_local_begin_at_context(&b->walk, ucontext);
}

// From where the fast ways got stuck, in a frame that was given out.
static void take_over(struct backtrace *b)
{
    const struct runtime_fast *f = b->fast;
    struct runtime_walk *walk = &b->walk;
    b->count = f->count;
    if (f->count == 1)
        return; // as it began
    uint8_t switches = walk->switches;
    uint32_t guessed_frame = walk->end.guessed_frame;
    runtime_begin(walk, ARCH_PC_RETURN);
    walk->index = (uint32_t)f->count - 1;
    walk->switches = switches;
    walk->end.guessed_frame = guessed_frame;
    walk->regs.pc = f->key;
    walk->regs.sp = f->sp;
    walk->regs.tracked[ARCH_NATIVE_FP_SLOT] = f->fp;
    walk->regs.valid = WALK_FAST_REGISTERS;
    b->forgot = true;
}

// What the frame is that was given out as number `index`. Gaps are frames that the fast ways gave.
static void note(const struct backtrace *b, size_t index, unsigned flags)
{
    struct walk_noted_walk *notes = b->notes;
    if (!notes)
        return;
    for (; notes->noted_count <= index; notes->noted_count++) {
        notes->flags[notes->noted_count] = 0;
        if (notes->sps && notes->noted_count < index)
            notes->sps[notes->noted_count] = 0;
    }
    notes->flags[index] = (uint8_t)flags;
}

// Of the frame the walk is at, the last that was given out. It is noted once it is known how it is left.
static inline void keep_sp(const struct backtrace *b)
{
    if (b->notes && b->notes->sps)
        b->notes->sps[b->count - 1] = (uintptr_t)b->walk.regs.sp;
}

// At a caller on the thread's own stack, of which all is known that the fast ways want to know, and no more: that a
// guess led to a frame matters where it is left.
static bool hand_back(struct backtrace *b)
{
    struct runtime_fast *f = b->fast;
    const struct runtime_walk *walk = &b->walk;
    uintptr_t sp = (uintptr_t)walk->regs.sp;
    // A key of 0 is that of an empty link. (pc: 1, on Arm.)
    if (!f || walk->pc_kind != ARCH_PC_RETURN || (walk->flags & (QUT_FRAME_DEX | QUT_FRAME_GUESSED)) ||
        arch_native_key((uintptr_t)walk->regs.pc) == 0 ||
        (walk->regs.valid & WALK_FAST_REGISTERS) != WALK_FAST_REGISTERS ||
        !walk_local_on_own_stack(f->thread, sp, b->here))
        return false;
    // What is remembered ascends. An alternate stack can lie anywhere, in the thread's own too.
    if (f->remember == RUNTIME_REMEMBER && runtime_memo_last(&f->thread->memo)->sp >= sp) {
        f->thread->memo.contiguous = false;
        walk_fast_end(f, WALK_STOP_STUCK);
    }
    f->count = b->count;
    f->sp = sp;
    f->fp = (uintptr_t)walk->regs.tracked[ARCH_NATIVE_FP_SLOT];
    f->ra = (uintptr_t)walk->regs.pc;
    f->key = arch_native_key(f->ra);
    f->thread->later_link.step = runtime_memo_unknown_step;
    return true;
}

// What was given out last is no frame. In the memo it makes room for the true one, of which it is not known how it is
// reached.
static void forget_last(struct backtrace *b)
{
    const struct runtime_fast *f = b->fast;
    b->count--;
    if (!f)
        return;
    struct runtime_memo *memo = &f->thread->memo;
    bool has_two = memo->new_count + memo->good_end - memo->good > 1;
    if (f->remember != RUNTIME_REMEMBER || !has_two || runtime_memo_last(memo)->sp != (uintptr_t)b->walk.regs.sp ||
        runtime_memo_last(memo)->ra != (uintptr_t)b->walk.regs.pc)
        memo->contiguous = false;
    else if (memo->new_count)
        memo->new_count--;
    else
        memo->good_end--; // a walk was cut there
}

// From an exchanged return address, or to a frame behind one, which then can be given out. False: the walk has ended.
__attribute__((noinline, cold)) static bool see_through(struct backtrace *b)
{
    bool was_exchanged = b->was_exchanged, is_exchanged = runtime_is_exchanged(&b->walk);
    b->was_exchanged = is_exchanged;
    if (was_exchanged)
        return !is_exchanged || walk_local_no_progress(&b->walk);
    forget_last(b);
    return walk_local_leave_exchanged(&b->local, &b->walk);
}

// Needs what stands above, and is read here.
#include "libqut/walk/shortcuts_inline.h"

// From the frame the walk is at, which was given out if any was. True: the fast ways can go on; false: walk.end says
// why not.
static inline __attribute__((always_inline)) bool run_slowly(struct backtrace *b)
{
    for (bool is_given = b->count != 0;; is_given = false) {
        if (!is_given && !b->was_exchanged) {
            if (b->count && !is_among_known(b) && hand_back(b))
                return true;
            if (b->count == b->max) {
                runtime_walk_ends(&arch_native_arch, &b->walk, QUT_END_LIMIT);
                return false;
            }
            if (b->count && b->fast)
                b->fast->thread->memo.contiguous = false;
            b->pcs[b->count++] = (uintptr_t)runtime_walk_lookup_pc(&arch_native_arch, &b->walk);
        }
        keep_sp(b);
        const bool is_recorded = b->local.is_recorded;
        if (b->left_count < UINT8_MAX)
            b->left_count++;
        if (is_recorded)
            record_frame(b);
        else if (pass_trail(b))
            return false;
        else if (!b->was_exchanged && pass_made_frames(b))
            keep_sp(b);
        enum walk_rule_told told = b->local.has_seen_steps && !is_recorded ? pass_known_rule(b) : WALK_RULE_NONE;
        if (told == WALK_RULE_LEFT || (told == WALK_RULE_NONE && pass_seen_step(b)))
            continue;
        if (told == WALK_RULE_LACKS_DEX_PC && b->forgot) {
            runtime_walk_ends(&arch_native_arch, &b->walk, QUT_END_NO_REGISTER);
            return false;
        }
        uintptr_t pc = (uintptr_t)runtime_walk_pc(&arch_native_arch, &b->walk);
        walk_local_classify(&b->local, &b->walk);
        if (b->was_exchanged || walk_local_is_exchanged(&b->walk)) {
            b->local.is_spoiled = true;
            if (!see_through(b))
                return false;
            continue;
        }
        b->slow_count++;
        b->pcs[b->count - 1] = (uintptr_t)runtime_walk_lookup_pc(&arch_native_arch, &b->walk); // in a thunk: another
        if (forgot_dex_pc(b)) {
            runtime_walk_ends(&arch_native_arch, &b->walk, QUT_END_NO_REGISTER);
            return false;
        }
        walk_local_note_classified(&b->local, &b->walk, pc);
        walk_local_keep_rule(&b->local, &b->walk, pc);
        unsigned flags = b->walk.flags;
        bool moved = walk_local_leave(&b->local, &b->walk);
        if (moved && (flags & QUT_FRAME_SIGNAL)) // b->here not before: there is little stack
            walk_local_choose_direct(&b->local, (uintptr_t)b->walk.regs.sp, b->here);
        // Only now is it known that the handler's frame returned into a trampoline, at its first instruction.
        bool was_signal = moved ? b->walk.pc_kind == ARCH_PC_EXACT : (b->walk.flags & QUT_FRAME_SIGNAL) != 0;
        if (was_signal)
            b->pcs[b->count - 1] = pc;
        flags |= was_signal ? QUT_FRAME_SIGNAL : 0u;
        note(b, b->count - 1, flags);
        if (is_recorded)
            record_step(b, moved, flags);
        if (!moved)
            return false;
        walk_local_keep_step(&b->local, &b->walk, flags);
    }
}

// How it ended, in a function of its own: the stack for that is not needed on the way.
__attribute__((noinline)) static size_t end_on(struct backtrace *b, struct runtime_fast *f, enum qut_stop stop,
                                               struct qut_end *end)
{
    struct runtime_thread *thread = runtime_thread_self();
    enum qut_end_reason reason = (enum qut_end_reason)b->walk.end.reason;
    if (stop != WALK_STOP_STUCK) {
        reason = end_fast(f, stop, b->walk.end.guessed_frame);
        b->count = f->count;
    } else if (end) {
        *end = b->walk.end;
    }
    if (f) {
        f->count = b->count;
        f->remembered_count += b->followed_count;
        end_memo(f, stop, reason);
        count_walk(thread, reason, b->count, f->remembered_count, b->slow_count);
        choose_next_begin(b, reason);
        offer_same_walk(thread);
    } else {
        modules_stats_count_end(reason);
        if (thread && atomic_load_explicit(&thread->walking, memory_order_relaxed) == 1)
            thread->memo.contiguous = false;
    }
    // Behind the mark, a handler's walk may have what is the thread's: this walk's state too.
    size_t count = b->count;
    if (!b->notes)
        modules_leave(thread);
    return count;
}

// From where thread->fast stands, or with f = NULL from the beginning.
static inline __attribute__((always_inline)) size_t run_on(struct backtrace *b, uintptr_t here, struct runtime_fast *f,
                                                           uintptr_t *pcs, size_t max, struct qut_end *end,
                                                           const struct arch_capture *capture, const void *ucontext,
                                                           struct walk_noted_walk *notes)
{
    b->here = here;
    b->notes = notes;
    b->fast = f && f->thread->begin == RUNTIME_BEGIN_FAST ? f : NULL;
    b->pcs = pcs;
    b->max = max;
    b->count = b->slow_count = b->left_count = b->followed_count = b->forgot = b->was_exchanged = b->was_known = 0;
    b->local.jit = (struct modules_jit_asked){0};
    b->local.unlisted = b->local.made_number = 0;
    begin_slowly(b, capture, ucontext);
    struct runtime_thread *thread = runtime_thread_self();
    const struct modules *modules = f       ? f->modules
                                    : notes ? notes->modules
                                            : atomic_load_explicit(&modules_current, memory_order_seq_cst);
    enum qut_stop stop = WALK_STOP_STUCK;
    if (!modules)
        runtime_walk_ends(&arch_native_arch, &b->walk, QUT_END_NOT_STARTED);
    while (modules && stop == WALK_STOP_STUCK) {
        if (b->fast)
            take_over(b);
        walk_local_begin(&b->local, thread, modules, (uintptr_t)b->walk.regs.sp, here);
        if (f)
            use_thread(b);
        if (run_slowly(b)) {
            stop = walk_fast_run(f);
        } else if (b->walk.end.reason == QUT_END_NO_REGISTER && b->forgot) {
            f->thread->memo.contiguous = false;
            b->fast = NULL;
            b->forgot = b->was_known = false;
            b->count = 0;
            if (notes)
                notes->noted_count = 0;
            begin_slowly(b, capture, ucontext);
        } else {
            break;
        }
    }
    return end_on(b, f, stop, end);
}

static_assert(sizeof(struct backtrace) <= sizeof((struct runtime_thread *)0)->slow, "it has its place there");

__attribute__((noinline)) size_t walk_slowly_from(struct runtime_fast *f)
{
    struct backtrace *b = (struct backtrace *)(void *)f->thread->slow;
    char here;
    return run_on(b, (uintptr_t)&here, f->is_slow ? NULL : f, f->pcs, f->max, f->end, f->capture, f->ucontext,
                  f->notes);
}

__attribute__((noinline)) size_t walk_slowly_captured(uintptr_t *pcs, size_t max, struct qut_end *end,
                                                      const struct arch_capture *capture)
{
    struct backtrace b;
    return run_on(&b, (uintptr_t)&b, NULL, pcs, max, end, capture, NULL, NULL);
}

__attribute__((noinline)) size_t walk_slowly_context(const void *ucontext, uintptr_t *pcs, size_t max,
                                                     struct qut_end *end)
{
    struct backtrace b;
    return run_on(&b, (uintptr_t)&b, NULL, pcs, max, end, NULL, ucontext, NULL);
}

static_assert(sizeof(struct backtrace) <= sizeof((struct walk_noted_walk *)0)->place, "and there");

__attribute__((noinline)) size_t walk_slowly_noted(struct walk_noted_walk *notes, const struct arch_capture *capture,
                                                   const void *ucontext)
{
    struct backtrace *b = (struct backtrace *)(void *)notes->place;
    char here;
    return run_on(b, (uintptr_t)&here, NULL, notes->pcs, notes->max, &notes->end, capture, ucontext, notes);
}
