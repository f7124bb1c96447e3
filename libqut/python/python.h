// SPDX-License-Identifier: Apache-2.0
// Functions of CPython in this process's own samples: taken by the thread that is sampled, in its handler, and put
// among the native frames of its walk (libqut/cpython says how). No names there: a frame becomes a number of function
// and line. What tells a function from all others is kept when it is first met, while its frame holds it.
//
//   look.c       our thread: where the interpreter is, and which thread state is whose
//   own_stack.c  handlers: a thread's functions among its frames
//   numbers.c    handlers: which number a function has; our thread: what it is called
//   lines.c      handlers: lines of instructions
#ifndef QUT_PYTHON_PYTHON_H
#define QUT_PYTHON_PYTHON_H

#include <stdatomic.h>
#include <stdbool.h>

#include "libqut/cpython/cpython.h"
#include "libqut/functions/functions.h"

#pragma GCC visibility push(hidden)

// What a frame's pc is: CPYTHON_NUMBER_BASE and what stands there, as in a trace from outside.

struct python_known;
extern _Atomic(struct python_known *) python_known; // NULL: no interpreter

// Whether there is something to be merged. Signal-safe.
static inline bool python_is_there(void)
{
    return __builtin_expect(atomic_load_explicit(&python_known, memory_order_relaxed) != NULL, 0);
}

// The calling thread's functions, met for the trace with that mark, into the walk of `count` frames that it has just
// taken, which may be cut then. How many frames there are then; 0: all is as it was. Between modules_enter and
// modules_leave. Signal-safe; takes less than 2 KiB of stack.
size_t python_merge(struct walk_noted_walk *notes, size_t count, const struct arch_capture *capture,
                    const void *ucontext, uint32_t mark);

// ---- our thread

// Looks for the interpreter, and lists its threads where a handler asked for it. In how many ms it is due again; -1:
// when the bell rings. Under work.
int python_look(void);
// Calls tell for each function that was met for the trace with that mark, and not told yet. Under work.
void python_tell(uint32_t mark, functions_tell *tell, void *context);

// In a child after fork: threads that took their functions, or told of one, have stayed behind.
void python_after_fork(void);

// Gives back what stays for the process's life. No walk runs any more.
void python_forget(void);

#pragma GCC visibility pop

#endif
