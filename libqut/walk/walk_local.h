// SPDX-License-Identifier: Apache-2.0
// Walking the calling thread, frame by frame: what the backtrace and the cursor have in common. Everything here is
// signal-safe: it allocates nothing, takes no lock, keeps errno, and all of its state is on its own stack, below 1 KiB.
#ifndef QUT_WALK_WALK_LOCAL_H
#define QUT_WALK_WALK_LOCAL_H

#include "libqut/arch/native.h"
#include "libqut/modules/jit.h"
#include "libqut/modules/modules.h"
#include "libqut/runtime/walk_inline.h"
#include "libqut/walk/known_rules.h"
#include "libqut/walk/seen_steps.h"
#include "libqut/walk/trail.h"

// Only libqut calls these, so calls need no detour.
#pragma GCC visibility push(hidden)

// A saved frame pointer and its return address. Twice as many took walks of aarch64 and riscv64 to 1,024 bytes of
// stack.
enum { WALK_WINDOW_BYTES = 2 * sizeof(uintptr_t) };

// What one walk works with.
struct walk_local {
    struct runtime_thread *thread; // NULL: not registered
    const struct modules *modules;
    // Of one bit: there is little room for all of this.
    bool has_code_window : 1; // the thread's
    bool has_seen_steps : 1;  // the same
    bool up_to_date : 1;      // every answer of `modules` holds; else each is confirmed
    bool is_recorded : 1;     // the walk is, as the thread's trail
    bool is_spoiled : 1;      // the step under way depends on what cannot be compared
    uint8_t window_bytes;     // of `window`: what the last fault-safe read brought
    uint32_t unlisted;        // the module that no loader lists and this walk has confirmed last; 0: none. As jit
    const void *confirmed;    // the module that was found last, or what modules_jit_find did
    uint32_t made_number;     // of pieces of code, as the machine has counted that this walk has met; 0: not asked yet
    struct walk_rule_source source; // of the frame that was classified last
    struct modules_jit_asked jit;   // filled by who begins the walk: it outlives what is begun again on the way
    // The part of the stack that is known to be there: read directly.
    struct walk_direct direct;
    // Elsewhere.
    uintptr_t window_start;
    uint8_t window[WALK_WINDOW_BYTES];
};

// `modules` is what modules_enter gave. `here` is an address on the running stack.
void walk_local_begin(struct walk_local *local, struct runtime_thread *thread, const struct modules *modules,
                      uintptr_t sp, uintptr_t here);

// The walk may use what is the thread's. Behind walk_local_begin.
void walk_local_use_thread(struct walk_local *local);

// Which stack is sp on, and what of it is sure to be there?
void walk_local_choose_direct(struct walk_local *local, uintptr_t sp, uintptr_t here);

// Whether sp is on the stack of a registered thread, which then can be read from sp up to stack_high.
bool walk_local_grown(struct runtime_thread *thread, uintptr_t sp, uintptr_t here); // if it lies further in than ever
static inline bool walk_local_on_own_stack(struct runtime_thread *thread, uintptr_t sp, uintptr_t here)
{
    if (sp >= thread->stack_high || sp < thread->stack_limit)
        return false;
    return (here >= thread->stack_low && sp >= thread->stack_low) || walk_local_grown(thread, sp, here);
}

extern const struct runtime_walk_ops walk_local_ops; // context: struct walk_local

// Of one vector register of this machine; 0: not known. Signal-safe.
uint64_t walk_local_vector_bytes(void);

// A step that the thread may make again (seen_steps.h): its frame, which was at `pc`, is classified; it has led to the
// frame the walk is at.
static inline void walk_local_note_classified(struct walk_local *local, const struct runtime_walk *walk, uintptr_t pc)
{
    if (local->has_seen_steps)
        walk_seen_classified(local->thread->seen, walk, pc);
    if (local->is_recorded)
        walk_trail_classified(local->thread->trail, walk, pc);
}
// ... and its rule, which has led nowhere yet.
static inline void walk_local_keep_rule(struct walk_local *local, const struct runtime_walk *walk, uintptr_t pc)
{
    if (local->has_seen_steps)
        walk_rules_keep(local->thread->rules, walk, pc, &local->source);
}
static inline void walk_local_keep_step(struct walk_local *local, const struct runtime_walk *walk, unsigned flags)
{
    if (local->has_seen_steps)
        walk_seen_keep(local->thread->seen, walk, flags);
}

// What code's rules rest on (proofs.c): whether an image that no loader lists is still there; how many pieces of code
// the machine has made, 0: not known.
bool walk_local_confirm_unlisted(struct walk_local *local, const struct module *module, uintptr_t pc);
uint32_t walk_local_made_number(struct walk_local *local, uintptr_t pc);

// Whether that is what it was when a rule was kept. context: struct walk_local.
bool walk_local_proof_holds(void *context, uintptr_t pc, unsigned proof, uint32_t number);
bool walk_local_rule_holds(void *context, const struct runtime_known_rule *rule);

// The parts of walk_local_classify. Functions of their own, that nothing lies around: the stack for looking a rule up
// is not needed while it is confirmed, nor while it is applied.
void walk_local_find_rule(struct walk_local *local, struct runtime_walk *walk);
bool walk_local_find_true_return(struct walk_local *local, struct runtime_walk *walk); // of what runtime_is_traced
void walk_local_confirm(struct walk_local *local, struct runtime_walk *walk);

// Fills how the frame is left, unless it is known.
static inline void walk_local_classify(struct walk_local *local, struct runtime_walk *walk)
{
    if (walk->classified)
        return;
    walk_local_find_rule(local, walk);
    if (runtime_is_traced(walk) && walk_local_find_true_return(local, walk))
        walk_local_find_rule(local, walk);
    // Code that a compiler made may be other code by now, and what is no code may be some.
    bool is_jit = (walk->flags & QUT_FRAME_JIT) && walk->end.reason != QUT_END_TABLE_PENDING;
    if (is_jit || walk->end.reason == QUT_END_NO_MODULE)
        walk_local_confirm(local, walk);
}

// By what is filled.
bool walk_local_leave(struct walk_local *local, struct runtime_walk *walk);

// Functions of their own, so that walks by the slow way need no more stack. Of what was classified: it is no frame.
bool walk_local_is_exchanged(const struct runtime_walk *walk);

// From an exchanged return address (runtime_is_exchanged) to the true one.
bool walk_local_leave_exchanged(struct walk_local *local, struct runtime_walk *walk);

// To the caller. False: the walk has ended.
static inline bool walk_local_step(struct walk_local *local, struct runtime_walk *walk, uintptr_t here)
{
    walk_local_classify(local, walk);
    bool was_signal = walk->flags & QUT_FRAME_SIGNAL;
    if (!walk_local_leave(local, walk))
        return false;
    if (was_signal)
        walk_local_choose_direct(local, (uintptr_t)walk->regs.sp, here);
    return true;
}

void walk_local_begin_at_capture(struct runtime_walk *walk, const struct arch_capture *capture);
void walk_local_begin_at_context(struct runtime_walk *walk, const void *ucontext);

// How a walk ends that is led to an exchanged return address by another one.
bool walk_local_no_progress(struct runtime_walk *walk);

// How a walk that could not begin ends.
bool walk_local_not_started(struct runtime_walk *walk);

#pragma GCC visibility pop

#endif
