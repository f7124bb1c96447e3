// SPDX-License-Identifier: Apache-2.0
// Frame pointers, followed: what all others are compared with. This file is built with frame pointers.
#include "bench/walk/walkers.h"
#include "machine.h"

static size_t walk_nothing(uintptr_t *pcs, size_t max)
{
    (void)pcs;
    return max;
}

static size_t chase(uintptr_t *pcs, size_t max)
{
    const uintptr_t *frame = __builtin_frame_address(0);
    size_t count = 0;
    for (; count < max && frame; count++) {
        pcs[count] = frame[BENCH_FP_RETURN];
        frame = (const uintptr_t *)frame[BENCH_FP_CALLER];
    }
    return count;
}

// As a sampler has to do it, which cannot know that every frame pointer is one.
static size_t chase_checked(uintptr_t *pcs, size_t max)
{
    uintptr_t frame = (uintptr_t)__builtin_frame_address(0), last = bench_stack.low;
    uintptr_t end = bench_stack.high - 2 * sizeof(uintptr_t);
    size_t count = 0;
    while (count < max && frame > last && frame <= end && frame % sizeof(uintptr_t) == 0) {
        const uintptr_t *words = (const uintptr_t *)frame;
        uintptr_t pc = words[BENCH_FP_RETURN];
        if (pc < 4096)
            break;
        pcs[count++] = pc;
        last = frame;
        frame = words[BENCH_FP_CALLER];
    }
    return count;
}

const struct bench_walker bench_walker_nothing = {.name = "nothing", .walk = walk_nothing, .walks_nothing = true};
const struct bench_walker bench_walker_chase = {.name = "chase", .walk = chase, .needs_frame_pointers = true};
const struct bench_walker bench_walker_chase_checked = {
    .name = "chase-checked", .walk = chase_checked, .needs_frame_pointers = true};
