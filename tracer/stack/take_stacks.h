// SPDX-License-Identifier: Apache-2.0
// Takes the stacks of a target: all that is done while it is stopped.
#ifndef TRACER_STACK_TAKE_STACKS_H
#define TRACER_STACK_TAKE_STACKS_H

#include <qut/target.h>

#include "libqut/script/script.h"
#include "libqut/target/python.h"
#include "tracer/stack/stack_options.h"

struct stack_thread {
    struct qut_thread_info info;
    struct qut_frame *frames;
    size_t count;
    struct qut_end end;
    bool is_walked;                     // true
    struct target_python_stack *python; // until it is among the frames; NULL: none
    struct script_stack *v8;            // likewise
    const char *python_reason;          // why functions of CPython are missing or uncertain; NULL: none are
};

struct stack_take {
    struct stack_thread *threads;
    size_t count;
    uint64_t stopped_ns; // as qut_target_stopped_ns says
};

// Returns 0, or -1 with *error filled. Nothing is left stopped. What was taken is the caller's to free, also after an
// error.
int stack_take(struct qut_target *target, const struct stack_options *options, struct stack_take *take,
               struct qut_target_error *error);
void stack_take_free(struct stack_take *take);

#endif
