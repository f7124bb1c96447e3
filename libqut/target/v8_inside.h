// SPDX-License-Identifier: Apache-2.0
#ifndef QUT_TARGET_V8_INSIDE_H
#define QUT_TARGET_V8_INSIDE_H

#include "libqut/target/machine.h"
#include "libqut/target/v8.h"

enum {
    TARGET_V8_ASKED_MAX = 128, // functions that are read at once
    TARGET_V8_SLOT_BITS = 9,
    TARGET_V8_SLOTS = 1 << TARGET_V8_SLOT_BITS,
    TARGET_V8_KNOWN_BITS = 11,
};

// What was read of a function, and what that rests on. Number 0: it is none.
struct target_v8_known_function {
    struct v8_proof proof;
    uint32_t number;
};

struct target_v8_known_position {
    uint64_t bytecodes, table;
    uint32_t offset, function;
    int32_t position;
};

struct target_v8_known {
    struct target_v8_known_function functions[1 << TARGET_V8_KNOWN_BITS]; // by address
    struct target_v8_known_position positions[1 << TARGET_V8_KNOWN_BITS];
    // Of the stack that is taken.
    struct v8_frame frames[TARGET_V8_PLACES_MAX];
    uint16_t asked[TARGET_V8_PLACES_MAX]; // of each frame: which proof
    struct v8_proof proofs[TARGET_V8_ASKED_MAX];
    uint16_t slots[TARGET_V8_SLOTS]; // numbers of proofs, from 1 on
};

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
    struct target_v8_known *known;           // NULL: not needed yet
};

// ---- v8_take.c

// Whether the machine made the code at a pc: for the program, or its own.
bool target_v8_is_its_code(const struct qut_target *target, uint64_t pc, bool *is_made);
// A frame's pointer, if the frame stands: the one behind it is its caller's. 0: it has none.
uint64_t target_v8_pointer_of(const struct qut_frame *frames, size_t count, size_t index);

// ---- v8_known.c

// NULL: no memory.
struct target_v8_known *target_v8_known(struct target_v8 *v8);
// Fills the places of a stack, of which known->frames says what the frames hold.
void target_v8_know(struct target_v8 *v8, const struct elf_art_memory *memory, struct target_v8_stack *stack);

// ---- v8_functions.c

// The number of a function; 0: there is no room.
uint32_t target_v8_intern(struct target_v8 *v8, const struct v8_function *function);
void target_v8_free_functions(struct target_v8 *v8);

// ---- v8_lines.c

// The line of a position, from 1 on; 0: not known.
uint32_t target_v8_line_of(struct qut_target *target, uint32_t script, int32_t position);

#endif
