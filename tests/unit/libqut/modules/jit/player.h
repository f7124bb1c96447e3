// SPDX-License-Identifier: Apache-2.0
// Calling code made at run time, and walking from what it calls: what the walk says is compared with what a walk
// through compiled code in its place said.
#ifndef TESTS_UNIT_LIBQUT_MODULES_JIT_PLAYER_H
#define TESTS_UNIT_LIBQUT_MODULES_JIT_PLAYER_H

#include <stdbool.h>

#include <qut/local.h>

#include "tests/unit/libqut/modules/jit/code.h"
#include "tests/unit/libqut/modules/jit/owner.h"

enum { PLAYER_FRAMES_MAX = 64 };

enum verdict {
    CROSSED, // everything is as it should be
    PENDING, // the walk ended at the code, which is not known yet
    UNKNOWN, // ... which has no owner
    WRONG,   // anything else
};

// What is outside of the code: the same for all calls of one thread by player_call.
struct player {
    uintptr_t outer[PLAYER_FRAMES_MAX];
    size_t outer_count;
    uint32_t outer_reason;
    // Where the last wrong walk went wrong.
    uintptr_t pcs[PLAYER_FRAMES_MAX];
    size_t count;
    struct qut_end end;
    uint32_t jit_frame_flags; // of the frame of the code, where it was crossed
};

// Runs a slot, walks in what it calls, every way there is. All have to agree.
enum verdict player_walk(struct player *player, unsigned slot);
const char *player_text(const struct player *player);

// Whether a walk whose frame `at` is in the code has, outside of it, what the player knows, and ends as it should.
bool player_is_outer(const struct player *player, const uintptr_t *pcs, size_t count, size_t at,
                     const struct qut_end *end);

// A qut_compile_fn: for symbol files player_compile_jit, which is code_compile at first, else that of
// tests/support/discipline.h.
extern qut_compile_fn player_compile_jit;
int player_compile(void *context, const struct qut_compile_request *request, void **table, size_t *table_size,
                   char *reason, size_t reason_size);

#endif
