// SPDX-License-Identifier: Apache-2.0
// Functions of JavaScript in this process's own samples: taken by the thread that is sampled, in its handler, and put
// among the native frames of its walk (libqut/v8 says how). A frame becomes a number of its function; lines would need
// the script's text, which no handler reads.
//
//   look.c       our thread: where V8 is, and its objects' fields
//   own_stack.c  handlers: a thread's functions among its frames
//   numbers.c    handlers: which number a function has; our thread: what it is called
#ifndef QUT_JAVASCRIPT_JAVASCRIPT_H
#define QUT_JAVASCRIPT_JAVASCRIPT_H

#include <stdatomic.h>
#include <stdbool.h>

#include "libqut/functions/functions.h"
#include "libqut/v8/v8.h"

#pragma GCC visibility push(hidden)

struct javascript_known;
extern _Atomic(struct javascript_known *) javascript_known; // NULL: no V8

// Whether there is something to be merged. Signal-safe.
static inline bool javascript_is_there(void)
{
    return __builtin_expect(atomic_load_explicit(&javascript_known, memory_order_relaxed) != NULL, 0);
}

// The calling thread's functions, met for the trace with that mark, into the walk of `count` frames that it has just
// taken, which may be cut then. How many frames there are then; 0: all is as it was. Between modules_enter and
// modules_leave. Signal-safe; takes less than 2 KiB of stack.
size_t javascript_merge(struct walk_noted_walk *notes, size_t count, bool is_interrupted, uint32_t mark);

// ---- our thread

// Looks for V8 where modules have changed. Under work.
void javascript_look(void);
// Calls tell for each function that was met for the trace with that mark, and not told yet. Under work.
void javascript_tell(uint32_t mark, functions_tell *tell, void *context);

// In a child after fork: threads that took their functions, or told of one, have stayed behind.
void javascript_after_fork(void);

// Gives back what stays for the process's life. No walk runs any more.
void javascript_forget(void);

#pragma GCC visibility pop

#endif
