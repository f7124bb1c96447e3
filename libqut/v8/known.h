// SPDX-License-Identifier: Apache-2.0
// Which functions frames are in. A thread waits for that, so what was read of a function is kept, with what it rests
// on: the objects that lead to its name. These are read again each time, of all frames at once, and the name counts if
// all of them are what they were.
#ifndef QUT_V8_KNOWN_H
#define QUT_V8_KNOWN_H

#include "libqut/v8/v8.h"

enum {
    V8_PLACES_MAX = 4096,
    V8_ASKED_MAX = 128, // functions that are read at once
    V8_SLOT_BITS = 9,
    V8_KNOWN_BITS = 11,
};

// A frame of JavaScript.
struct v8_place {
    uint64_t frame_pointer;
    uint32_t function; // its number
    int32_t position;  // in the script, of the call that it is in; -1: not known
    uint32_t line;     // the same; 0: not known
};

// What was read of a function, and what that rests on. Number 0: it is none.
struct v8_known_function {
    struct v8_proof proof;
    uint32_t number;
};

struct v8_known_position {
    uint64_t bytecodes, table;
    uint32_t offset, function;
    int32_t position;
};

// Zeroed before it is used. One user at a time; large.
struct v8_known {
    struct v8_known_function functions[1 << V8_KNOWN_BITS]; // by address
    struct v8_known_position positions[1 << V8_KNOWN_BITS];
    // Of the stack that is taken.
    struct v8_frame frames[V8_PLACES_MAX];
    uint16_t asked[V8_PLACES_MAX]; // of each frame: which proof
    struct v8_proof proofs[V8_ASKED_MAX];
    uint16_t slots[1 << V8_SLOT_BITS]; // numbers of proofs, from 1 on
    uint32_t numbers[V8_ASKED_MAX];
    uint16_t at[V8_ASKED_MAX];
    struct elf_art_piece pieces[V8_ASKED_MAX];
    uint8_t staged[V8_ASKED_MAX * V8_PROOF_BYTES_MAX]; // side by side, to be read at once
    struct v8_function function;
};

// Gives functions numbers, from 1 on. 0: there is no room.
struct v8_numbers {
    uint32_t (*number)(void *context, const struct v8_function *function);
    void *context;
};

// Fills the places of a stack, of which known->frames says what the frames hold; those that only looked like frames are
// left out. How many there are then. Allocates nothing itself.
size_t v8_know(struct v8_known *known, const struct v8_layout *layout, const struct elf_art_memory *memory,
               const struct v8_numbers *numbers, bool with_positions, struct v8_place *places, size_t count);
// The place of that frame; NULL: there is none. Places are ascending by frame pointer.
const struct v8_place *v8_place_at(const struct v8_place *places, size_t count, uint64_t frame_pointer);

#endif
