// SPDX-License-Identifier: Apache-2.0
#ifndef QUT_SCRIPT_INSIDE_H
#define QUT_SCRIPT_INSIDE_H

#include "libqut/script/script.h"
#include "libqut/target/machine.h"

// A script, and where its lines begin.
struct script_source {
    char *file;
    struct v8_script seen; // where it was seen last
    uint64_t text_hash;    // of its beginning, its end and its length
    uint32_t *line_starts; // but the first line's
    size_t line_count, line_capacity;
    bool is_read;   // lines are known
    bool is_unread; // they could not be had where it was seen last
    uint32_t older;
};

struct script_machine {
    uint64_t found; // where a symbol of it was seen last; 0: there is none
    struct target_image *image;
    bool is_known;
    const char *missing; // why it is not; NULL: it is
    struct v8_layout layout;
    struct script_function **functions; // from number 1 on
    size_t function_count, function_capacity;
    struct script_source **scripts; // likewise
    size_t script_count, script_capacity;
    uint32_t *function_heads, *script_heads; // by hash
    struct v8_known *known;                  // NULL: not needed yet
};

// ---- take.c

// Whether the machine made the code at a pc: for the program, or its own.
bool script_is_its_code(const struct qut_target *target, uint64_t pc, bool *is_made);

// ---- functions.c

// The number of a function; 0: there is no room.
uint32_t script_intern(struct script_machine *v8, const struct v8_function *function);
void script_free_functions(struct script_machine *v8);

// ---- lines.c

// The line of a position, from 1 on; 0: not known.
uint32_t script_line_of(struct qut_target *target, uint32_t script, int32_t position);

#endif
