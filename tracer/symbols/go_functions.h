// SPDX-License-Identifier: Apache-2.0
// The table of functions that Go programs carry for their own runtime (.gopclntab), which stripping leaves: of Go 1.16
// on.
#ifndef TRACER_SYMBOLS_GO_FUNCTIONS_H
#define TRACER_SYMBOLS_GO_FUNCTIONS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/cursor_inline.h"

struct go_functions {
    struct base_bytes names; // each up to its NUL, or the end; what a function's name_offset is in
    // Inside.
    struct base_bytes entries, details;
    uint64_t text_start;
    uint64_t count;
    unsigned word_bytes; // of an entry
    unsigned pc_bytes;   // of a pc in the details
};

struct go_function {
    uint64_t start, end;
    uint32_t name_offset; // below names.size
};

// False: it is no such table, or one of another version.
bool symbols_go_open(struct go_functions *functions, struct base_bytes table);
// One of functions->count. False: it is malformed.
bool symbols_go_at(const struct go_functions *functions, uint64_t index, struct go_function *function);

#endif
