// SPDX-License-Identifier: Apache-2.0
// A frame in the terms of the files it is in.
#ifndef TRACER_STACK_FRAME_TEXT_H
#define TRACER_STACK_FRAME_TEXT_H

#include "libqut/arch/arch.h"
#include "tracer/stack/stack_modules.h"
#include "tracer/stack/stack_options.h"
#include "tracer/stack/take_stacks.h"

struct stack_place {
    uint64_t pc; // in its module, as AOSP counts: inside the call for a caller, on arm with the Thumb bit; with no
                 // module the address in memory
    const struct stack_module *module; // NULL: nothing is mapped there
    const char *entry;                 // of an archive: the dex file that pc counts from; else NULL
    uint64_t entry_offset;             // in the archive
    bool is_address;                   // pc is the address in memory, although there is a module
    char *function;                    // allocated; NULL: not known
    char *mangled;                     // allocated; NULL: function is not demangled
    uint64_t function_offset;
    const char *file; // source file; NULL: not known. Until something else is described
    uint32_t line;    // 0: not known
    bool is_inlined;  // into the next level of the frame
    bool is_near;     // the line is that of the next place that the compiler describes
};

// How many functions a frame stands for: one, and those that were inlined there.
size_t stack_level_count(struct stack_modules *modules, const struct stack_options *options,
                         const struct qut_frame *frame);
// `index` is the frame's in its stack; level 0 is the innermost, the last one has the code.
void stack_describe(struct stack_modules *modules, const struct stack_options *options, const struct qut_frame *frame,
                    size_t index, size_t level, struct stack_place *place);
void stack_place_free(struct stack_place *place);

// Why the thread's stack has no more frames, in words. Returns text.
const char *stack_end_text(struct stack_modules *modules, const struct stack_thread *thread, char *text,
                           size_t text_size);

// Where what pc counts from begins in the module's file: an image or a dex file in an archive, or a mapping of what is
// neither. The place has a module.
uint64_t stack_place_offset(const struct stack_place *place);

// "crasher.apk!libx.so (offset 0x4000)", "<unknown>". base_name: the last part of the path alone. Returns text.
const char *stack_place_module(const struct stack_place *place, bool base_name, char *text, size_t text_size);

#endif
