// SPDX-License-Identifier: Apache-2.0
// The way of one walk of a thread, from a frame of it to the root: the states at its frames, every word of the stack
// that had a part in it, and what else it rested on. A later walk that comes to one of these states, and finds those
// words as they were, goes the same way, whatever the frames are: of interpreters, of code that was made at run time,
// of bytecode. What the memo (memo.h) is for frames that links leave.
//
// Belongs, as the links do, to the outermost walk of its thread. Why it is exact: docs/walk-tiers.md.
#ifndef QUT_RUNTIME_TRAIL_H
#define QUT_RUNTIME_TRAIL_H

#include <assert.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "formats/qut_rule.h"

enum {
    RUNTIME_TRAIL_FRAMES_MAX = 192,
    RUNTIME_TRAIL_WORDS_MAX = 1024,
    RUNTIME_TRAIL_PROOFS_MAX = 128,
    RUNTIME_TRAIL_NO_GUESS = 0xff,
};
static_assert(RUNTIME_TRAIL_FRAMES_MAX < RUNTIME_TRAIL_NO_GUESS, "counted in bytes");

// The state in which a walk was at a frame, as far as the rest of the way depends on it.
struct runtime_trail_state {
    uintptr_t pc;                       // 0: a walk cannot join here
    uintptr_t tracked[QUT_TRACKED_MAX]; // by slot
    uint8_t needed, known;              // slots that the rest of the way asks for; those of all whose value was known
    uint8_t flags;                      // qut_frame_flags, as the frame was come to
    uint8_t frames_to_guess;            // from here on to the first guessed one; NO_GUESS: there is none
    uint16_t first_word, first_proof;   // of the rest of the way
};

// What a frame's rule rests on (known_rules.h), to be asked again by each walk that follows.
struct runtime_trail_proof {
    uintptr_t pc;
    uint32_t number;
    uint8_t proof; // enum runtime_rule_proof
};

// Of the way that is being recorded.
struct runtime_trail_step {
    uintptr_t pc;
    bool is_spoiled;       // the step depends on what cannot be compared
    bool is_plain;         // it is left by a rule of the frequent shape
    uint8_t machine_count; // pieces of a virtual machine's compiled code that were looked at
    uint8_t used, passed;  // slots: asked for, left as they are
    uint16_t leave_word;   // the first word that is read once the rule is known
};

struct runtime_trail {
    uint32_t modules_epoch, made_generation; // what it stands for
    uint16_t frame_count;                    // 0: there is none
    uint16_t word_count, proof_count;
    bool needs_registers; // bytecode was found by registers that the fast ways do not know
    // When to record the next one: walks that it was of no use to, and after how many.
    uint8_t misses;
    uint16_t patience;
    uintptr_t end_pc;                             // where the walk ended, as at an outermost frame
    uintptr_t base;                               // sp of the first frame
    uint32_t high_bytes;                          // from the base: the outermost word
    uint32_t sp_bytes[RUNTIME_TRAIL_FRAMES_MAX];  // from the base; ascending
    uintptr_t pcs[RUNTIME_TRAIL_FRAMES_MAX];      // as they are given out
    uint8_t flags[RUNTIME_TRAIL_FRAMES_MAX];      // as the frames turned out
    uint32_t word_bytes[RUNTIME_TRAIL_WORDS_MAX]; // from the base
    uintptr_t words[RUNTIME_TRAIL_WORDS_MAX];
    struct runtime_trail_proof proofs[RUNTIME_TRAIL_PROOFS_MAX];
    struct runtime_trail_state states[RUNTIME_TRAIL_FRAMES_MAX];
    // While it is recorded.
    struct runtime_trail_step step;
    uint8_t used[RUNTIME_TRAIL_FRAMES_MAX], passed[RUNTIME_TRAIL_FRAMES_MAX];
    int8_t word_slots[RUNTIME_TRAIL_WORDS_MAX]; // of the register that the word is; -1: it counts in any case
};

#endif
