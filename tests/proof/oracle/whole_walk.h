// SPDX-License-Identifier: Apache-2.0
// Whole walks from sampled instructions, compared with the whole shadow stack.
#ifndef TESTS_PROOF_ORACLE_WHOLE_WALK_H
#define TESTS_PROOF_ORACLE_WHOLE_WALK_H

#include "tests/proof/oracle/known.h"
#include "tests/proof/oracle/shadow.h"

enum { WRONG_WALKS_KEPT = 20 };

struct wrong_walk {
    uint64_t start_pc; // where the walk began
    uint32_t depth;    // of the first wrong frame
    uint64_t left_pc;  // of the frame before it
    uint64_t wanted, given;
};

struct whole_walks {
    struct guest *guest;
    struct oracle_modules *modules;
    uint64_t taken, equal, frames;
    uint64_t early[QUT_END_REASON_COUNT];    // right so far, but it ended before the stack did
    uint64_t early_pc[QUT_END_REASON_COUNT]; // where, the last time
    uint64_t wrong, wrong_but_marked;        // marked: it said that it guessed
    uint64_t wrong_but_doubtful;             // a frame before it was left by a rule that its table marks so
    uint64_t wrong_by_known;                 // a frame before it lies in code with a known mistake
    const struct known_mistakes *known;
    struct wrong_walk wrongs[WRONG_WALKS_KEPT];
};

void whole_walk(struct whole_walks *walks, const struct arch_frame_regs *regs, const struct shadow *shadow);

#endif
