// SPDX-License-Identifier: Apache-2.0
// Walking the calling thread, frame by frame: what the backtrace and the cursor have in common. Everything here is
// signal-safe: it allocates nothing, takes no lock, keeps errno, and all of its state is on its own stack, below 1 KiB.
#ifndef QUT_RUNTIME_WALK_LOCAL_H
#define QUT_RUNTIME_WALK_LOCAL_H

#include "libqut/arch/native.h"
#include "libqut/runtime/modules.h"
#include "libqut/runtime/walk_step.h"

// Nobody outside libqut calls these, so calls need no detour.
#pragma GCC visibility push(hidden)

enum { QUT_WINDOW_BYTES = 32 };

// What one walk works with.
struct qut_local {
    struct qut_thread *thread; // NULL: not registered
    const struct qut_modules *modules;
    bool up_to_date;       // every answer of `modules` holds; else each is confirmed
    const void *confirmed; // the module that was found last; of a compiler's code, see jit.h
    // The part of the stack that is known to be there: read directly.
    uintptr_t direct_low, direct_high;
    // Elsewhere: what the last fault-safe read brought.
    uintptr_t window_start;
    size_t window_bytes;
    uint8_t window[QUT_WINDOW_BYTES];
};

// `modules` is what qut_modules_enter gave. `here` is an address on the running stack.
void qut_local_begin(struct qut_local *local, struct qut_thread *thread, const struct qut_modules *modules,
                     uintptr_t sp, uintptr_t here);

// Which stack is sp on, and what of it is sure to be there?
void qut_local_choose_direct(struct qut_local *local, uintptr_t sp, uintptr_t here);

// Whether sp is on the stack of a registered thread, which then can be read from sp up to stack_high.
bool qut_local_grown(struct qut_thread *thread, uintptr_t sp, uintptr_t here); // if it lies further in than ever
static inline bool qut_local_on_own_stack(struct qut_thread *thread, uintptr_t sp, uintptr_t here)
{
    if (sp >= thread->stack_high || sp < thread->stack_limit)
        return false;
    return (here >= thread->stack_low && sp >= thread->stack_low) || qut_local_grown(thread, sp, here);
}

extern const struct qut_walk_ops qut_local_ops; // context: struct qut_local

// Of one vector register of this machine; 0: not known. Signal-safe.
uint64_t qut_local_vector_bytes(void);

// The halves of qut_local_classify. Functions of their own, that nothing lies around: the stack for looking a rule up
// is not needed while it is confirmed, nor while it is applied.
void qut_local_find_rule(struct qut_local *local, struct qut_walk *walk);
void qut_local_confirm(struct qut_local *local, struct qut_walk *walk);

// Fills how the frame is left, unless it is known.
static inline void qut_local_classify(struct qut_local *local, struct qut_walk *walk)
{
    if (walk->classified)
        return;
    qut_local_find_rule(local, walk);
    // Code that a compiler made may be other code by now, and what is no code may be some.
    bool is_jit = (walk->flags & QUT_FRAME_JIT) && walk->end.reason != QUT_END_TABLE_PENDING;
    if (is_jit || walk->end.reason == QUT_END_NO_MODULE)
        qut_local_confirm(local, walk);
}

// By what is filled.
bool qut_local_leave(struct qut_local *local, struct qut_walk *walk);

// To the caller. False: the walk has ended.
static inline bool qut_local_step(struct qut_local *local, struct qut_walk *walk, uintptr_t here)
{
    qut_local_classify(local, walk);
    bool was_signal = walk->flags & QUT_FRAME_SIGNAL;
    if (!qut_local_leave(local, walk))
        return false;
    if (was_signal)
        qut_local_choose_direct(local, (uintptr_t)walk->regs.sp, here);
    return true;
}

void qut_local_begin_at_capture(struct qut_walk *walk, const struct qut_capture *capture);
void qut_local_begin_at_context(struct qut_walk *walk, const void *ucontext);

// How a walk that could not begin ends.
bool qut_local_not_started(struct qut_walk *walk);

#pragma GCC visibility pop

#endif
