// SPDX-License-Identifier: Apache-2.0
// The slow way, frame by frame, and back to the fast ways where they can go on (walk_fast.h). Where it turns out that a
// register was needed that they do not know, the walk is done once more, slowly from its beginning.
//
// Of `capture` and `ucontext` one is NULL: where the walk begins. All are signal-safe, and end the walk. Their
// arguments are those of the functions that end by calling them: none has a frame beneath.
#ifndef QUT_WALK_SLOW_WALK_H
#define QUT_WALK_SLOW_WALK_H

#include "libqut/walk/noted_walk.h"
#include "libqut/walk/walk_fast.h"

// Only libqut calls these, so calls need no detour.
#pragma GCC visibility push(hidden)

// The fast ways got stuck, or cannot be taken: f is the thread's, where there is room for the slow way too.
size_t walk_slowly_from(struct runtime_fast *f);

// The thread is not registered, or walks already.
size_t walk_slowly_captured(uintptr_t *pcs, size_t max, struct qut_end *end, const struct arch_capture *capture);
size_t walk_slowly_context(const void *ucontext, uintptr_t *pcs, size_t max, struct qut_end *end);
size_t walk_slowly_noted(struct walk_noted_walk *notes, const struct arch_capture *capture, const void *ucontext);

#pragma GCC visibility pop

#endif
