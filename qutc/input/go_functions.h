// SPDX-License-Identifier: Apache-2.0
// The table of functions that Go programs carry for their own runtime (.gopclntab), which stripping leaves: of Go 1.16
// on.
#ifndef QUTC_INPUT_GO_FUNCTIONS_H
#define QUTC_INPUT_GO_FUNCTIONS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/cursor_inline.h"
#include "qutc/input/image.h"

struct input_go_functions {
    struct base_bytes names; // each up to its NUL, or the end; what a function's name_offset is in
    // Inside.
    struct base_bytes entries, details, deltas;
    uint64_t text_start;
    uint64_t count;
    unsigned word_bytes;    // of an entry
    unsigned pc_bytes;      // of a pc in the details
    unsigned flags_offset;  // in the details, behind the pc
    unsigned quantum_bytes; // all instructions are multiples of it
};

enum input_go_flag {
    INPUT_GO_TOP_FRAME = 1,   // the outermost of its stack
    INPUT_GO_WRITES_SP = 2,   // another stack's, say
    INPUT_GO_IS_ASSEMBLY = 4, // keeps no frame pointer
};

struct input_go_function {
    uint64_t start, end;
    uint32_t name_offset; // below names.size
    uint32_t sp_offset;   // of what input_go_sp_begin reads; 0: nothing is said
    uint8_t flags;        // enum input_go_flag; of Go 1.16 there are none
};

// The image's. False: it has none, or one that input_go_open does not know.
bool input_go_find(const struct input_image *image, struct input_go_functions *functions);
// `module` is what .go.module holds, or nothing: from 1.26 on it alone says where the text begins. False: it is no such
// table, or one of another version.
bool input_go_open(struct input_go_functions *functions, struct base_bytes table, struct base_bytes module);
// One of functions->count. False: it is malformed.
bool input_go_at(const struct input_go_functions *functions, uint64_t index, struct input_go_function *function);

// How far sp lies below what it was at the function's entry, from pc to pc.
struct input_go_sp {
    struct base_cursor cursor;
    uint64_t pc, end; // of the function
    int64_t depth_bytes;
    unsigned quantum_bytes;
    bool has_begun;
    // ---- what input_go_sp_next found: from `start` up to `pc`
    uint64_t start;
};
void input_go_sp_begin(struct input_go_sp *sp, const struct input_go_functions *functions,
                       const struct input_go_function *function);
// False: that was all.
bool input_go_sp_next(struct input_go_sp *sp);

#endif
