// SPDX-License-Identifier: Apache-2.0
// See made_frames.c.
#ifndef QUT_WALK_MADE_FRAMES_H
#define QUT_WALK_MADE_FRAMES_H

#include "libqut/walk/walk_local.h"

#pragma GCC visibility push(hidden)

// At a frame that a guess led to and that is not classified: how many callers of its kind follow, at most `max`. Their
// addresses, as a walk gives them out, are in pcs, their stack pointers in sps, if that is not NULL, and the walk is at
// the last of them, which has the flags of the first. Signal-safe.
size_t walk_made_frames(struct walk_local *local, struct runtime_walk *walk, uintptr_t *pcs, uintptr_t *sps,
                        size_t max);

#pragma GCC visibility pop

#endif
