// SPDX-License-Identifier: Apache-2.0
// Stacks made to order. A play is a script of calls, returns and walks; its frames are functions of many shapes, each
// of which asks the script what to do next. Every function notes its return address when it begins, so that the play
// knows its stack without any unwind information. At each walk the judge compares: all shortcuts, the cache alone,
// none, and what the play knows.
#ifndef TESTS_PROOF_TIERS_PLAY_H
#define TESTS_PROOF_TIERS_PLAY_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <qut/local.h>

#include "tests/support/exchange.h"

enum { PLAY_DEPTH_MAX = 6000, PLAY_PCS_MAX = 8192, PLAY_OUTER_MAX = 256 };

struct play;
typedef void play_function(struct play *play);

enum play_kind {
    PLAY_RETURN, // from the function that asks
    PLAY_CALL,
    PLAY_WALK,
    PLAY_ACT, // play->act
};

struct play_op {
    uint8_t kind;
    uint8_t site;      // each function calls from two places
    uint16_t function; // index in play_functions
    uint16_t bytes;    // those that take their frame's size from the script: so much more
    uint16_t max;      // of a walk; 0: all there is room for
};

struct play {
    // The functions in assembly read these three.
    uintptr_t site;           // where to call from
    uintptr_t data;           // what to keep in the frame pointer
    uintptr_t bytes;          // how much stack to take
    struct exchange exchange; // of the function that is called next, where its return address is to be exchanged
    const struct play_op *ops;
    size_t op_count, op_next;
    // Instead of `ops`: makes them up.
    struct play_op (*invent)(struct play *play);
    void (*act)(struct play *play);
    bool data_varies; // `data` is another value at each call
    uint64_t random_state;
    size_t walk_max;         // of the walk under way
    bool switches_at_random; // the three walks of a judge take any shortcuts, in any order
    bool needs_others;       // any function: also those that are found by other registers
    bool may_lose_fp;        // a walk may end for lack of the frame pointer
    bool lets_memory_pause;  // where it does not pay; else it is stubborn
    bool lets_links_pause;   // where they mispredict; else they do in every second walk
    bool skip_nodes;         // handlers walk in between: the last walk is not the judge's
    volatile bool is_on;     // it has noted what is beneath it, and has not ended
    // What is truly on the stack, outermost first: return addresses, of the functions under way.
    volatile size_t depth;
    uintptr_t returns[PLAY_DEPTH_MAX];
    uintptr_t positions[PLAY_DEPTH_MAX]; // where on the stack: of equal frames that stayed or came back, the same
    // The stack at the walk before, if that was this play's.
    size_t last_depth;
    uintptr_t last_returns[PLAY_DEPTH_MAX], last_positions[PLAY_DEPTH_MAX];
    // Beneath them, innermost first: what called the play's root.
    uintptr_t outer[PLAY_OUTER_MAX];
    size_t outer_count;
    size_t outer_sure_count; // of these, those that no guess led to
    struct qut_end outer_end;
    uintptr_t sink;
};

// ---- scripts
struct play_script {
    struct play_op ops[40000];
    size_t count;
};
void play_call(struct play_script *script, unsigned function, unsigned site, unsigned bytes);
void play_back(struct play_script *script, size_t levels);
void play_walk(struct play_script *script, size_t max);
void play_act(struct play_script *script);
// Calls of so many compiled functions, of many shapes; which ones, `first` says.
void play_descend(struct play_script *script, unsigned count, unsigned first);

// ---- play.c
// An empty play, nothing judged yet, and a thread that remembers nothing.
void play_reset(struct play *play);
// Is the play's root: notes what lies beneath it, by a walk without shortcuts, and runs the script until that ends or
// says RETURN here. With play->invent there are no ops.
void play_run(struct play *play, const struct play_op *ops, size_t op_count);
// Starts libqut, without a thread of its own: tables change only when a test says so. False, and a line about it: there
// is no compiler.
bool play_start(void);
// For the functions of a play.
void play_enter(struct play *play, uintptr_t return_address);
void play_leave(struct play *play);
play_function *play_next(struct play *play);     // NULL: return; play_leave is done
struct play_op play_any_call(struct play *play); // a call of any function that tells where it saves the frame pointer
// Now and then, with PLAY_EXCHANGES=1 in the environment: what to call in its place, so that it returns to code of
// ours.
play_function *play_exchanged(struct play *play, play_function *function);
bool play_exchanges(void);
uint64_t play_random(struct play *play);
size_t play_below(struct play *play, size_t limit);
// As walks report it, if it was not exchanged.
uintptr_t play_pc_of_return(uintptr_t return_address);

// ---- frames.c and <arch>/frames.S
enum {
    PLAY_PLAIN, // in assembly, of equal size: leaves the frame pointer alone
    PLAY_DATA,  // saves it and keeps data in it
    PLAY_BASE,  // saves it and finds its own frame by it; of `bytes` more
    PLAY_LOSE,  // as DATA, but does not say where it was saved
    PLAY_OTHER, // as BASE, by a register that is not the frame pointer
    PLAY_TURN,  // plain; its rule is another where it is interrupted as soon as a call has returned
    PLAY_FIRST, // the first of the compiled ones. Two of equal size:
    PLAY_TWIN = PLAY_FIRST,
    PLAY_OTHER_TWIN,
    PLAY_ALLOCA, // of `bytes` more
    PLAY_ALIGNED,
    PLAY_ALIGNED_ALLOCA,
    PLAY_HEAVY, // keeps data in as many registers as it can
    PLAY_SIZES, // from here on: of many sizes
};
extern play_function *const play_functions[];
extern const size_t play_function_count;
void play_plain(struct play *play);
void play_keep_data(struct play *play);
void play_base(struct play *play);
void play_lose(struct play *play);
void play_other_base(struct play *play);
void play_turn(struct play *play);
extern const char play_turned[]; // there

// ---- judge.c
struct judged {
    uint64_t walks, wrong;
    uint64_t frames, remembered; // of the walks with all shortcuts
    uint64_t without_links;      // ... of which so many, or parts of them, found rules by hashing
    // Frames that a walk has in common with the one before it, all callers included, and how many of these were walked
    // all the same. Of walks to the end of the stack, both.
    uint64_t common;
    size_t missed_most, missed_last;
    uint64_t nodes_kept;      // found again by runtime_last_walk
    uint64_t ended_elsewhere; // from contexts: not where the play's root is, or by a guess
    char first_wrong[320];
    // Of the last one that was judged:
    size_t count, last_remembered, last_looked_up, last_kept;
    size_t link_count; // that the thread has
    bool last_known;   // runtime_last_walk knew it
    uint32_t reason;
};
extern struct judged judged;

// Walks from the calling function, with all shortcuts and without; compares all.
void play_judge(struct play *play);
// The same from a context, inside a handler: what the play knows must be the outer part.
void play_judge_context(struct play *play, const void *ucontext);
// Whether the play's frames and what is beneath are the outer part of these.
bool play_is_outer_part(const struct play *play, const uintptr_t *pcs, size_t count, uint32_t reason);
void judged_reset(void);
// What the next walk finds is no longer what this play left: a caller that walks in between says so.
void judged_forget(void);
// After a play, with tap.h: nothing was wrong.
// Frames that a walk may go through before it finds itself where it was: the judge, and a caller of it.
enum { PLAY_MISSED_MAX = 2 };
#define CHECK_REMEMBERED()                                                                                             \
    CHECK(judged.remembered > 0 && judged.missed_most <= PLAY_MISSED_MAX,                                              \
          "%zu of %zu frames remembered, %zu missed in one walk", (size_t)judged.remembered, (size_t)judged.frames,    \
          judged.missed_most)

#define CHECK_JUDGED()                                                                                                 \
    CHECK(judged.wrong == 0 && judged.walks > 0, "%zu of %zu walks wrong; the first: %s", (size_t)judged.wrong,        \
          (size_t)judged.walks, judged.first_wrong)

#endif
