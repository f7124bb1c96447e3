// SPDX-License-Identifier: Apache-2.0
#include "bench/store/stacks.h"

enum { FUNCTIONS = BENCH_SUBJECTS * BENCH_SUBJECT_FUNCTIONS, ONE = 1 << 16 };

static uint64_t draw(uint64_t *state)
{
    *state ^= *state << 13;
    *state ^= *state >> 7;
    *state ^= *state << 17;
    return *state >> 16;
}

static bench_function *function_at(uint64_t index)
{
    bench_function *const *const tables[BENCH_SUBJECTS] = {bench_subject_nofp_0, bench_subject_nofp_1,
                                                           bench_subject_nofp_2, bench_subject_nofp_3};
    return tables[index / BENCH_SUBJECT_FUNCTIONS % BENCH_SUBJECTS][index % BENCH_SUBJECT_FUNCTIONS];
}

static void next(struct store_stacks *stacks);

// Several leaves, so that the innermost frame differs as well. Each has a number, which also keeps them from being
// merged.
#define LEAF(NUMBER)                                                                                                   \
    static __attribute__((noinline)) void leaf_##NUMBER(struct bench_path *path, size_t level)                         \
    {                                                                                                                  \
        struct store_stacks *stacks = path->run;                                                                       \
        stacks->take(stacks->context, level);                                                                          \
        path->salt = NUMBER;                                                                                           \
        next(stacks);                                                                                                  \
    }
LEAF(0)
LEAF(1)
LEAF(2)
LEAF(3)

static bench_function *const leaves[STORE_LEAVES] = {leaf_0, leaf_1, leaf_2, leaf_3};

// Frames kept + 1, ... `depth` get new functions, the last a leaf.
static void choose(struct store_stacks *stacks, size_t kept, size_t depth)
{
    for (size_t level = kept + 1; level <= depth; level++) {
        uint64_t choice = draw(&stacks->random) % stacks->branching;
        uint64_t mixed = (stacks->prefix[level - 1] + choice + 1) * 0x9e3779b97f4a7c15u;
        stacks->prefix[level] = mixed ^ mixed >> 29;
        bool is_leaf = level == depth;
        stacks->call[level] = is_leaf ? leaves[choice % STORE_LEAVES] : function_at(stacks->prefix[level] % FUNCTIONS);
    }
    stacks->changed_frames += depth - kept;
    stacks->depth = depth;
}

static void next(struct store_stacks *stacks)
{
    if (--stacks->left == 0) {
        stacks->path.stay = BENCH_NOBODY;
        return;
    }
    // How many frames go: 0 in a third of the steps, then 1, 2, 3, ... each half as often as the one before.
    size_t depth = stacks->depth, gone = 1;
    if (draw(&stacks->random) % 3 != 0)
        while (draw(&stacks->random) % 2 == 0 && gone + 2 < depth)
            gone++;
    else
        gone = 0;
    // The leaf itself always returns: where the stack stays, its caller calls the same one again.
    size_t kept = depth - (gone ? gone : 1), wanted = depth;
    if (gone) {
        uint64_t direction = draw(&stacks->random) % 8;
        wanted += direction == 0 && depth < stacks->depth_mean + 8;
        wanted -= direction == 1 && depth > stacks->depth_mean - 8 && depth > kept + 1;
        choose(stacks, kept, wanted);
    }
    stacks->path.stay = kept;
}

void store_stacks_run(struct store_stacks *stacks, uint64_t seed, size_t steps)
{
    stacks->random = seed * 2 + 1;
    stacks->left = steps;
    stacks->changed_frames = 0;
    stacks->path =
        (struct bench_path){.call = stacks->call, .returns = stacks->returns, .stay = BENCH_NOBODY, .run = stacks};
    stacks->prefix[0] = seed;
    choose(stacks, 0, stacks->depth_mean);
    do
        stacks->call[1](&stacks->path, 1);
    while (stacks->path.stay == 0);
}
