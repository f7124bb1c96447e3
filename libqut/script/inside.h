// SPDX-License-Identifier: Apache-2.0
#ifndef QUT_SCRIPT_INSIDE_H
#define QUT_SCRIPT_INSIDE_H

#include "libqut/script/script.h"
#include "libqut/target/machine.h"

enum {
    SCRIPT_ASKED_MAX = 128, // functions that are read at once
    SCRIPT_SLOT_BITS = 9,
    SCRIPT_SLOTS = 1 << SCRIPT_SLOT_BITS,
    SCRIPT_KNOWN_BITS = 11,
};

// What was read of a function, and what that rests on. Number 0: it is none.
struct script_known_function {
    struct v8_proof proof;
    uint32_t number;
};

struct script_known_position {
    uint64_t bytecodes, table;
    uint32_t offset, function;
    int32_t position;
};

struct script_known {
    struct script_known_function functions[1 << SCRIPT_KNOWN_BITS]; // by address
    struct script_known_position positions[1 << SCRIPT_KNOWN_BITS];
    // Of the stack that is taken.
    struct v8_frame frames[SCRIPT_PLACES_MAX];
    uint16_t asked[SCRIPT_PLACES_MAX]; // of each frame: which proof
    struct v8_proof proofs[SCRIPT_ASKED_MAX];
    uint16_t slots[SCRIPT_SLOTS]; // numbers of proofs, from 1 on
};

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
    struct script_known *known;              // NULL: not needed yet
};

// ---- take.c

// Whether the machine made the code at a pc: for the program, or its own.
bool script_is_its_code(const struct qut_target *target, uint64_t pc, bool *is_made);
// A frame's pointer, if the frame stands: the one behind it is its caller's. 0: it has none.
uint64_t script_pointer_of(const struct qut_frame *frames, size_t count, size_t index);

// ---- known.c

// NULL: no memory.
struct script_known *script_known(struct script_machine *v8);
// Fills the places of a stack, of which known->frames says what the frames hold.
void script_know(struct script_machine *v8, const struct elf_art_memory *memory, struct script_stack *stack);

// ---- functions.c

// The number of a function; 0: there is no room.
uint32_t script_intern(struct script_machine *v8, const struct v8_function *function);
void script_free_functions(struct script_machine *v8);

// ---- lines.c

// The line of a position, from 1 on; 0: not known.
uint32_t script_line_of(struct qut_target *target, uint32_t script, int32_t position);

#endif
