// SPDX-License-Identifier: Apache-2.0
// A stack that changes as those of real programs do: a random walk in a tree of calls. Most steps replace a frame or
// two, few replace many; a third leaves the stack as it was. The functions are those of bench/walk, really called.
#ifndef QUT_BENCH_STORE_STACKS_H
#define QUT_BENCH_STORE_STACKS_H

#include <stdbool.h>
#include <stdint.h>

#include "bench/walk/subject.h"

enum {
    STORE_DEPTH_MAX = 128,
    STORE_LEAVES = 4,
};

struct store_stacks {
    size_t depth_mean;
    unsigned branching; // functions that one calls: how many different stacks there are
    uint64_t random;
    size_t depth;
    uint64_t prefix[STORE_DEPTH_MAX + 2]; // of each level: what tells its stack from others
    bench_function *call[STORE_DEPTH_MAX + 2];
    uintptr_t returns[STORE_DEPTH_MAX + 2];
    struct bench_path path;
    size_t left;                                     // steps
    void (*take)(void *context, size_t frame_count); // in the leaf: frame_count functions are on the stack
    void *context;
    size_t changed_frames; // sum over all steps
};

// Runs `steps` steps from a seed: the same ones for the same seed.
void store_stacks_run(struct store_stacks *stacks, uint64_t seed, size_t steps);

#endif
