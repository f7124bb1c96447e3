// SPDX-License-Identifier: Apache-2.0
// Functions of CPython in a target: taken of a thread that stands still, named later, put among the frames of its walk.
//
//   target_python_look    which threads the interpreter knows    before threads are stopped, or once all are
//   target_python_take    a thread's functions                   while it stands still: some reads of memory
//   target_python_name    their names                            once it goes on, at once
//   target_python_merge   into the frames of its walk            likewise
#ifndef QUT_TARGET_PYTHON_H
#define QUT_TARGET_PYTHON_H

#include <qut/target.h>

#include "libqut/cpython/cpython.h"

// What lookup_pc of a frame of Python is: CPYTHON_NUMBER_BASE and what stands there.
enum { TARGET_PYTHON_FUNCTIONS_MAX = 1 << 20 };
#define TARGET_PYTHON_INTERNAL UINT32_MAX

struct target_python_stack {
    struct cpython_stack taken;
    uint32_t *functions; // of each frame: its number; 0: not known; TARGET_PYTHON_INTERNAL: it is none of the program
    // Why functions are missing, or stand where they need not belong; NULL: all is well. Static text.
    const char *reason;
    size_t merged, guessed; // frames of functions that were put among the native ones; where that is not certain
};

// NULL: no memory.
struct target_python_stack *target_python_stack_new(void);
void target_python_stack_free(struct target_python_stack *stack);
// With room for what it holds, and no more. NULL: no memory.
struct target_python_stack *target_python_stack_copy(const struct target_python_stack *stack);

// Looks for the interpreter where that was not done since mappings have changed, and lists its threads. False: there is
// none.
bool target_python_look(struct qut_target *target);
// Whether threads have to be listed anew to take this one.
bool target_python_knows(const struct qut_target *target, pid_t tid);

// tid: as the process itself knows the thread.
void target_python_take(struct qut_target *target, pid_t tid, struct target_python_stack *stack);
// The same of a thread of the target's list, which was walked just now. One that sleeps has to sleep on.
void target_python_take_thread(struct qut_target *target, size_t thread, struct target_python_stack *stack);
// The names of a stack's functions. A code object that is another one by now leaves its function without a name.
void target_python_name(struct qut_target *target, struct target_python_stack *stack);
// Into frames, of which there are `count` and may be `max`. Returns how many there are then.
size_t target_python_merge(struct qut_target *target, struct target_python_stack *stack, struct qut_frame *frames,
                           size_t count, size_t max, struct qut_end *end);

struct target_python_function {
    struct cpython_code code;
    char *name, *file; // NULL: not known
    uint8_t *lines;
    size_t line_bytes;
    bool has_lines; // they were read; there may be none
    bool is_named;  // all this was read
    uint32_t older; // number of the next one with this hash; 0: none
};
// By number, from 1 to the count; NULL: there is none. They stay as long as the target.
const struct target_python_function *target_python_function(const struct qut_target *target, uint32_t number);
size_t target_python_function_count(const struct qut_target *target);
static inline uint32_t target_python_number(uint64_t lookup_pc)
{
    return (uint32_t)(lookup_pc >> CPYTHON_LINE_BITS & 0xfffffff);
}
static inline uint32_t target_python_line(uint64_t lookup_pc)
{
    return (uint32_t)lookup_pc & ((1u << CPYTHON_LINE_BITS) - 1);
}

#endif
