// SPDX-License-Identifier: Apache-2.0
// A number of measured walks by one walker through one kind of code, while the stack changes as a scenario has it.
#ifndef QUT_BENCH_WALK_RUN_H
#define QUT_BENCH_WALK_RUN_H

#include "bench/walk/subject.h"
#include "bench/walk/walkers.h"

enum {
    BENCH_MAX_DEPTH = 200,
    BENCH_VARIANTS = 4,
    BENCH_LEAVES = 8,
    BENCH_MAX_OWN_FRAMES = 8,
    BENCH_MAX_WALKS = 4096,
    BENCH_KNOWN_FUNCTIONS = 300,
    BENCH_ALL_FUNCTIONS = BENCH_SUBJECTS * BENCH_SUBJECT_FUNCTIONS,
};

enum bench_code { BENCH_FP, BENCH_NOFP, BENCH_CODES };
extern const char *const bench_code_names[BENCH_CODES];

// How the stack differs from that of the walk before.
enum bench_change {
    BENCH_CHANGE_TOP, // the innermost `frames`: 0, the same stack
    BENCH_CHANGE_MIDDLE,
    BENCH_CHANGE_ALL,
    BENCH_CHANGE_KNOWN,  // ... too, each by any of BENCH_KNOWN_FUNCTIONS that were seen before; 0: all
    BENCH_CHANGE_RANDOM, // all, and never seen before
};

struct bench_scenario {
    const char *name;
    enum bench_change change;
    size_t frames;
    bool cold_l2, cold_memory; // other memory is read before each walk
    bool fresh_thread;         // each walk is the first of its thread
};

const struct bench_scenario *bench_scenario(const char *name); // NULL: there is none
const struct bench_scenario *bench_scenario_at(size_t index);

// A stack of one depth: which function is called at which level, in each variant.
struct bench_stacks {
    size_t depth; // frames that are walked: the functions of levels 1 to depth, of which the last is a leaf
    const struct bench_scenario *scenario;
    size_t changed_level; // the outermost that changes
    bench_function *variants[BENCH_VARIANTS][BENCH_MAX_DEPTH + 1];
    size_t variant_count, variant;
    bench_function *functions[BENCH_ALL_FUNCTIONS]; // of the code, shuffled
    uint64_t random;
};

// 0, or -1: no two functions have frames of one size.
int bench_stacks_make(struct bench_stacks *stacks, const struct bench_scenario *scenario, size_t depth,
                      enum bench_code code, uint64_t seed);
// Sets path->call as the first walk is to find it.
void bench_stacks_first(struct bench_stacks *stacks, struct bench_path *path);
// ... as the next one is, and path->stay.
void bench_stacks_next(struct bench_stacks *stacks, struct bench_path *path);

// A walker, and what it walks through. The last three are found out by its first walk.
struct bench_item {
    const struct bench_walker *walker;
    enum bench_code code;
    struct bench_stacks *stacks;
    size_t own_frames; // its own that it gives first
    uintptr_t pc_back; // how far below the return addresses its pcs are
    bool known;
};

struct bench_run {
    struct bench_path path;
    struct bench_item *item;
    size_t max;  // of frames, with the walker's own
    size_t leaf; // which one ran last
    uintptr_t leaf_pcs[BENCH_LEAVES];
    uintptr_t leaf_frames[BENCH_LEAVES];
    bool counting;                             // marks instead of the clock
    bool probing;                              // a leaf is called for its pc and its frame
    const char *spoiled;                       // name of a walker whose pcs are made wrong: to see that this is noticed
    char mismatch[200];                        // empty: there was none
    size_t warm_count, walk_count, done_count; // the first are not measured
    uint64_t ticks[BENCH_MAX_WALKS];           // of those that are
    uintptr_t pcs[512];
    bench_function *call[BENCH_MAX_DEPTH + 2];
    uintptr_t returns[BENCH_MAX_DEPTH + 2];
};

extern bench_function *const bench_leaves[BENCH_LEAVES];

// Once in a process, after `counting` was set: learns the leaves' pcs.
void bench_run_prepare(struct bench_run *run);
// ticks[] then has walk_count values, in the order of the walks. 0, or -1 and why in run->mismatch.
int bench_run_walks(struct bench_run *run, struct bench_item *item, size_t warm_count, size_t walk_count);
// An address that differs between functions as much as the sizes of their frames.
uintptr_t bench_run_frame_below(bench_function *function);

// For the leaves: what comes before and after each walk.
void bench_run_before(struct bench_run *run);
void bench_run_after(struct bench_run *run, uint64_t ticks, size_t count);

#endif
