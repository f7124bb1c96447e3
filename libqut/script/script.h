// SPDX-License-Identifier: Apache-2.0
// Functions of JavaScript in a target: taken of a thread that stands still, put among the frames of its walk.
//
//   script_look    where the machine is, and its objects' fields    before threads are stopped
//   script_take    functions by frame pointers                      while the thread stands still
//   script_name    lines, of the scripts' text                      once it goes on, at once
//   script_merge   into the frames of its walk                      likewise
#ifndef QUT_SCRIPT_SCRIPT_H
#define QUT_SCRIPT_SCRIPT_H

#include <qut/target.h>

#include "libqut/v8/known.h"

enum { SCRIPT_FUNCTIONS_MAX = 1 << 20 };

struct script_stack {
    struct v8_place *places; // ascending by frame pointer
    size_t count;
    size_t named; // frames that were given functions
};

// NULL: no memory.
struct script_stack *script_stack_new(void);
void script_stack_free(struct script_stack *stack);
struct script_stack *script_stack_copy(const struct script_stack *stack);

// Looks for the machine where that was not done since mappings have changed. False: there is none that is known.
bool script_look(struct qut_target *target);
// Of a thread of the target's list, and its frames as they were walked just now. One that sleeps has to sleep on.
void script_take_thread(struct qut_target *target, size_t index, const struct qut_frame *frames, size_t count,
                        struct script_stack *stack);
// Of a copy of its stack, which is walked later: of all that could be a frame.
void script_take_copy(struct qut_target *target, const uint8_t *bytes, size_t size, uint64_t address,
                      struct script_stack *stack);
// Lines. A script that is another one by now leaves its functions without.
void script_name(struct qut_target *target, struct script_stack *stack);
// Into frames, of which there are `count` and may be `max`. Code that was made for a function becomes that function;
// behind code of the machine itself it is a frame more. Returns how many there are then.
size_t script_merge(struct qut_target *target, struct script_stack *stack, struct qut_frame *frames, size_t count,
                    size_t max, struct qut_end *end);

struct script_function {
    char *name, *file; // NULL: it has none
    int32_t start;     // where it begins in its script; -1: not known
    uint32_t script;   // number; 0: none
    uint32_t older;    // the next one with this hash
    bool is_finished;  // its name is what it stays
};
// By number, from 1 on; NULL: there is none. They stay as long as the target.
const struct script_function *script_function(const struct qut_target *target, uint32_t number);
static inline uint32_t script_number(uint64_t lookup_pc)
{
    return (uint32_t)(lookup_pc >> V8_LINE_BITS & 0xfffffff);
}
static inline uint32_t script_line(uint64_t lookup_pc)
{
    return (uint32_t)lookup_pc & ((1u << V8_LINE_BITS) - 1);
}

#endif
