// SPDX-License-Identifier: Apache-2.0
// The innermost functions: they call the walker. There are several, of other sizes, so that the innermost frame changes
// like those above it. This file is built with frame pointers.
#include "bench/walk/marks.h"
#include "bench/walk/run.h"
#include "machine.h"

static __attribute__((noinline)) void no_mark(void)
{
    __asm__ volatile("" ::: "memory");
}

static inline __attribute__((always_inline)) void walk_once(struct bench_path *path, size_t level, size_t leaf,
                                                            uintptr_t frame, uintptr_t returns)
{
    struct bench_run *run = path->run;
    path->returns[level] = returns;
    run->leaf = leaf;
    run->leaf_frames[leaf] = frame;
    bench_run_before(run);
    bench_walk_function *walk = run->item->walker->walk;
    uintptr_t *pcs = run->pcs;
    size_t max = run->max, count;
    uint64_t begin = 0, end = 0;
    if (run->counting) {
        // By pointers: with branches, compilers make two calls of the walker, and the leaf has two pcs.
        bool marked = !run->probing && run->done_count >= run->warm_count;
        void (*on)(void) = marked ? bench_count_on : no_mark, (*off)(void) = marked ? bench_count_off : no_mark;
        on();
        count = walk(pcs, max);
        off();
    } else {
        begin = bench_ticks();
        count = walk(pcs, max);
        end = bench_ticks();
    }
    bench_run_after(run, end - begin, count);
}

#define LEAF(number)                                                                                                   \
    static __attribute__((noinline)) void leaf_##number(struct bench_path *path, size_t level)                         \
    {                                                                                                                  \
        volatile unsigned char room[8 + 16 * number];                                                                  \
        room[0] = (unsigned char)level;                                                                                \
        walk_once(path, level, number, (uintptr_t)__builtin_frame_address(0), (uintptr_t)__builtin_return_address(0)); \
        path->sink = room[0];                                                                                          \
    }
LEAF(0)
LEAF(1)
LEAF(2)
LEAF(3)
LEAF(4)
LEAF(5)
LEAF(6)
LEAF(7)

bench_function *const bench_leaves[BENCH_LEAVES] = {leaf_0, leaf_1, leaf_2, leaf_3, leaf_4, leaf_5, leaf_6, leaf_7};
