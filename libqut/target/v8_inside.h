// SPDX-License-Identifier: Apache-2.0
#ifndef QUT_TARGET_V8_INSIDE_H
#define QUT_TARGET_V8_INSIDE_H

#include "libqut/target/machine.h"
#include "libqut/target/v8.h"

// A script, and where its lines begin.
struct target_v8_script {
    char *file;
    struct v8_script seen; // where it was seen last
    uint64_t text_hash;    // of its beginning, its end and its length
    uint32_t *line_starts; // but the first line's
    size_t line_count, line_capacity;
    bool is_read;   // lines are known
    bool is_unread; // they could not be had where it was seen last
    uint32_t older;
};

struct target_v8 {
    uint64_t found; // where a symbol of it was seen last; 0: there is none
    struct target_image *image;
    bool is_known;
    const char *missing; // why it is not; NULL: it is
    struct v8_layout layout;
    struct target_v8_function **functions; // from number 1 on
    size_t function_count, function_capacity;
    struct target_v8_script **scripts; // likewise
    size_t script_count, script_capacity;
    uint32_t *function_heads, *script_heads; // by hash
};

// ---- v8_functions.c

// The number of a function; 0: there is no room.
uint32_t target_v8_intern(struct target_v8 *v8, const struct v8_function *function);
void target_v8_free_functions(struct target_v8 *v8);

// ---- v8_lines.c

// The line of a position, from 1 on; 0: not known.
uint32_t target_v8_line_of(struct qut_target *target, uint32_t script, int32_t position);

#endif
