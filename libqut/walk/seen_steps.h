// SPDX-License-Identifier: Apache-2.0
// See seen_steps.c. All of it is signal-safe, for the outermost walk of the thread whose steps they are.
#ifndef QUT_WALK_SEEN_STEPS_H
#define QUT_WALK_SEEN_STEPS_H

#include <stdbool.h>
#include <stdint.h>

#include "libqut/arch/native.h"
#include "libqut/runtime/seen_steps.h"
#include "libqut/runtime/walk.h"
#include "libqut/runtime/walking_thread.h"

#pragma GCC visibility push(hidden)

// All that the fast ways know of a frame, and all that a step that can be kept depends on.
#define WALK_FAST_REGISTERS                                                                                            \
    ((uint64_t)1 << arch_native_arch.sp_reg | (uint64_t)1 << arch_native_arch.tracked[ARCH_NATIVE_FP_SLOT])

// Before the steps of a walk: drops all if what is known of code has changed.
void walk_seen_begin(struct runtime_seen_steps *seen, uint32_t modules_epoch, uint32_t made_generation);

static inline bool walk_seen_is_used(void)
{
    return (atomic_load_explicit(&runtime_tiers, memory_order_relaxed) & RUNTIME_TIER_MEMO) != 0;
}

// What of the stack can be read directly.
struct walk_direct {
    uintptr_t low, high;
};
static inline bool walk_is_direct(struct walk_direct direct, uintptr_t address)
{
    return address >= direct.low && address < direct.high && direct.high - address >= sizeof(uintptr_t);
}

// True: the walk was at a frame that the thread has left before, and is at its caller; *flags are what the frame turned
// out to be. False: it is where it was, and what it does from here on is noted, if the step can be kept.
bool walk_seen_follow(struct runtime_seen_steps *seen, struct runtime_walk *walk, struct walk_direct direct,
                      unsigned *flags);

// The step under way has read a word,
void walk_seen_note_read(struct runtime_seen_steps *seen, uintptr_t address, uintptr_t value);

// ... or what may be different next time though nothing tells,
static inline void walk_seen_give_up(struct runtime_seen_steps *seen)
{
    seen->pending = NULL;
}

// ... or has read code that nobody describes, to classify the frame, which was at `pc`: that may be other code next
// time;
void walk_seen_classified(struct runtime_seen_steps *seen, const struct runtime_walk *walk, uintptr_t pc);

// ... or it has led to the frame the walk is at.
void walk_seen_keep(struct runtime_seen_steps *seen, const struct runtime_walk *walk, unsigned flags);

// The fast ways got stuck in the last frame that was given out. True: the thread has left that one before, and they can
// go on, at its caller; bytecode between the two is given out. False: nothing has changed. `here`: on the running
// stack.
bool walk_seen_pass(struct runtime_fast *f, uintptr_t here);

#pragma GCC visibility pop

#endif
