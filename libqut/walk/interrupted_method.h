// SPDX-License-Identifier: Apache-2.0
// See interrupted_method.c.
#ifndef QUT_WALK_INTERRUPTED_METHOD_H
#define QUT_WALK_INTERRUPTED_METHOD_H

#include "libqut/walk/walk_fast.h"

#pragma GCC visibility push(hidden)

// The fast ways got stuck at the walk's first frame, which was interrupted. True: they can go on, at its caller. False:
// nothing has changed. Signal-safe.
bool walk_leave_interrupted_method(struct runtime_fast *f);

#pragma GCC visibility pop

#endif
