// SPDX-License-Identifier: Apache-2.0
// A frame in the terms of the files it is in.
#ifndef TRACER_DESCRIBE_H
#define TRACER_DESCRIBE_H

#include "libqut/arch/arch.h"
#include "tracer/modules.h"
#include "tracer/stack_options.h"
#include "tracer/take.h"

struct stack_place {
    uint64_t pc; // in its module, as AOSP counts: inside the call for a caller, on arm with the Thumb bit; with no
                 // module the address in memory
    const struct stack_module *module; // NULL: nothing is mapped there
    char *function;                    // allocated; NULL: not known
    char *mangled;                     // allocated; NULL: function is not demangled
    uint64_t function_offset;
};

// `index` is the frame's in its stack.
void stack_describe(struct stack_modules *modules, const struct stack_options *options, const struct qut_frame *frame,
                    size_t index, struct stack_place *place);
void stack_place_free(struct stack_place *place);

// Why the thread's stack has no more frames, in words. Returns text.
const char *stack_end_text(struct stack_modules *modules, const struct stack_thread *thread, char *text,
                           size_t text_size);

// "crasher.apk!libx.so (offset 0x4000)". Returns text.
const char *stack_module_name(const struct stack_module *module, char *text, size_t text_size);

#endif
