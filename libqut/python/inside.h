// SPDX-License-Identifier: Apache-2.0
#ifndef QUT_PYTHON_INSIDE_H
#define QUT_PYTHON_INSIDE_H

#include <qut/local.h>

#include "libqut/cpython/cpython.h"
#include "libqut/modules/registry.h"
#include "libqut/python/python.h"
#include "libqut/walk/noted_walk.h"

#pragma GCC visibility push(hidden)

enum {
    PYTHON_CODES_MAX = 64, // code objects that are looked at at once
    PYTHON_SLOTS = 256,
    PYTHON_PARTS = 6,             // of what a code object leads to: of each object its length, and what it holds
    PYTHON_TABLE_BYTES = 1 << 16, // of a table of lines
    PYTHON_FUNCTIONS_MAX = 1 << 14,
    PYTHON_NONE = 0,                  // a function that is not known
    PYTHON_INTERNAL_NUMBER = 1 << 28, // what is no function of the program
};

// The interpreter, as our thread found it. Replaced as a whole; freed when no walk can look at it.
struct python_known {
    struct modules_retired retired;
    struct cpython_runtime runtime; // its threads are behind it
    uint64_t text_start, text_end;
    uint64_t look_again_ns; // a thread that is not known asks for it from then on
    uint64_t look_each_ns;  // ... and one that is known, since it may be in more interpreters by now
    struct cpython_thread threads[];
};

// What a thread works with while it takes its functions.
struct python_room {
    struct functions_room room;
    struct cpython_stack stack;
    struct cpython_merging merging;
    uint32_t mark;
    struct qut_cursor cursor;
    // Code objects of some of the frames: where each has its slot; as they are in memory; what they are.
    uint8_t slots[PYTHON_SLOTS]; // number of the code object, from 1 on; 0: none
    unsigned code_count;
    struct os_part parts[PYTHON_CODES_MAX];
    struct cpython_code codes[PYTHON_CODES_MAX];
    bool is_code[PYTHON_CODES_MAX];
    uint32_t numbers[PYTHON_CODES_MAX];
    struct os_part content_parts[PYTHON_CODES_MAX * PYTHON_PARTS];
    uint8_t heads[PYTHON_CODES_MAX][CPYTHON_CODE_BYTES];
    char name[CPYTHON_NAME_BYTES], file[CPYTHON_NAME_BYTES];
    uint64_t pcs[CPYTHON_FRAMES_MAX]; // of each frame; 0: it is not shown
    struct cpython_frame frames[CPYTHON_FRAMES_MAX];
    struct cpython_group groups[CPYTHON_GROUPS_MAX];
    struct qut_frame native[WALK_NOTED_MAX];
    uint8_t table[PYTHON_TABLE_BYTES];
    struct cpython_view view;
};

// What became of walks that had functions to find.
enum python_count {
    PYTHON_MERGED,    // ... found them
    PYTHON_UNCERTAIN, // of these: which native frames run them is not certain, or some are missing
    PYTHON_UNKNOWN,   // its thread was not known yet
    PYTHON_BUSY,      // too many threads at once
    PYTHON_COUNTS
};

// ---- numbers.c

extern struct functions_table python_functions;
// The number of a function whose frame holds its code object; PYTHON_NONE: there is none, or no room. Signal-safe.
uint32_t python_function_of(const struct python_known *known, struct python_room *room, const struct cpython_code *code,
                            uint32_t mark);

// The same of all code objects of the room, where no version tells one from another: with one system call, those that
// are what was met last at their places. Of others the number is PYTHON_NONE. Signal-safe.
void python_find_unversioned(const struct python_known *known, struct python_room *room, uint32_t mark);

// ---- lines.c

bool python_lines_prepare(void);
void python_lines_forget(void);
// The line of an instruction of that function; 0: not known. Signal-safe.
uint32_t python_line_of(const struct python_known *known, struct python_room *room, const struct cpython_code *code,
                        uint32_t number, uint64_t instruction);

// ---- look.c

void python_want_look(void); // signal-safe

// ---- own_stack.c

extern struct functions_rooms python_rooms;
void python_add_count(enum python_count which); // signal-safe

#pragma GCC visibility pop

#endif
