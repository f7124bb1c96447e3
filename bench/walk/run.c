// SPDX-License-Identifier: Apache-2.0
#include "bench/walk/run.h"

#include <inttypes.h>
#include <pthread.h>
#include <stdio.h>
#include <string.h>

#include "bench/walk/cold.h"
#include "machine.h"

// Level 0: it has no frame that is walked.
static __attribute__((noinline)) void descend(struct bench_path *path)
{
    do
        path->call[1](path, 1);
    while (path->stay == 0);
}

static size_t walk_to_caller(uintptr_t *pcs, size_t max)
{
    (void)max;
    pcs[0] = (uintptr_t)__builtin_return_address(0);
    return 1;
}

static struct bench_item probe_item(void)
{
    static const struct bench_walker prober = {.name = "prober", .walk = walk_to_caller, .walks_nothing = true};
    return (struct bench_item){.walker = &prober};
}

static void set_up(struct bench_run *run, struct bench_item *item, size_t warm_count, size_t walk_count)
{
    run->path = (struct bench_path){.call = run->call, .returns = run->returns, .stay = BENCH_NOBODY, .run = run};
    run->item = item;
    run->warm_count = warm_count;
    run->walk_count = walk_count;
    run->done_count = 0;
    run->mismatch[0] = 0;
}

void bench_run_prepare(struct bench_run *run)
{
    struct bench_item item = probe_item();
    run->probing = true;
    for (size_t i = 0; i < BENCH_LEAVES; i++) {
        set_up(run, &item, 0, 1);
        run->call[1] = bench_leaves[i];
        descend(&run->path);
        run->leaf_pcs[i] = run->pcs[0];
    }
    run->probing = false;
}

uintptr_t bench_run_frame_below(bench_function *function)
{
    static struct bench_run run;
    struct bench_item item = probe_item();
    run.probing = true;
    set_up(&run, &item, 0, 1);
    run.call[1] = function;
    run.call[2] = bench_leaves[0];
    descend(&run.path);
    return run.leaf_frames[0];
}

// What a walk has to give as its frame i, the leaf being 0: what the functions themselves read.
static uintptr_t truth(const struct bench_run *run, size_t i)
{
    uintptr_t pc = i ? run->returns[run->item->stacks->depth - i + 1] : run->leaf_pcs[run->leaf];
    return pc & BENCH_PC_MASK;
}

// Where the leaf is among a walker's first frames, and whether its pcs are return addresses or lie in the calls.
static bool learn(struct bench_run *run, size_t count)
{
    static const uintptr_t backs[] = {0, 1, 2, 4};
    for (size_t own = 0; own < count && own <= BENCH_MAX_OWN_FRAMES; own++)
        for (size_t i = 0; i < sizeof backs / sizeof *backs; i++)
            if ((run->pcs[own] & BENCH_PC_MASK) + backs[i] == truth(run, 0)) {
                run->item->own_frames = own;
                run->item->pc_back = backs[i];
                run->item->known = true;
                return true;
            }
    return false;
}

static bool compare(struct bench_run *run, size_t count)
{
    struct bench_item *item = run->item;
    size_t depth = item->stacks->depth;
    bool first = !item->known;
    if (first && !learn(run, count)) {
        snprintf(run->mismatch, sizeof run->mismatch, "%zu frames, the caller's is not among the first", count);
        return false;
    }
    // With more frames of its own than it was thought to have, its first walk is too short.
    size_t wanted = first && item->own_frames + depth > run->max ? run->max : item->own_frames + depth;
    run->max = item->own_frames + depth;
    if (count < wanted) {
        snprintf(run->mismatch, sizeof run->mismatch, "%zu frames of %zu", count, wanted);
        return false;
    }
    for (size_t i = 0; i + item->own_frames < wanted; i++) {
        uintptr_t pc = (run->pcs[item->own_frames + i] & BENCH_PC_MASK) + item->pc_back;
        if (pc != truth(run, i)) {
            snprintf(run->mismatch, sizeof run->mismatch, "frame %zu: 0x%" PRIxPTR ", should be 0x%" PRIxPTR, i, pc,
                     truth(run, i));
            return false;
        }
    }
    return true;
}

void bench_run_before(struct bench_run *run)
{
    if (run->probing)
        return;
    if (run->item->stacks->scenario->cold_l2)
        bench_cool_l2();
    else if (run->item->stacks->scenario->cold_memory)
        bench_cool_all();
}

void bench_run_after(struct bench_run *run, uint64_t ticks, size_t count)
{
    run->path.stay = BENCH_NOBODY;
    if (run->probing)
        return;
    if (run->spoiled && strcmp(run->spoiled, run->item->walker->name) == 0)
        run->pcs[run->max - 1] ^= 16;
    if (!run->item->walker->walks_nothing && !compare(run, count))
        return;
    if (run->done_count >= run->warm_count)
        run->ticks[run->done_count - run->warm_count] = ticks;
    run->done_count++;
    if (run->done_count < run->warm_count + run->walk_count && !run->item->stacks->scenario->fresh_thread)
        bench_stacks_next(run->item->stacks, &run->path);
}

static void *one_thread(void *argument)
{
    struct bench_run *run = argument;
    bench_walkers_thread();
    bench_stacks_first(run->item->stacks, &run->path);
    descend(&run->path);
    return NULL;
}

int bench_run_walks(struct bench_run *run, struct bench_item *item, size_t warm_count, size_t walk_count)
{
    set_up(run, item, warm_count, walk_count);
    run->max = item->stacks->depth + (item->known ? item->own_frames : item->walker->own_frame_count);
    if (item->walker->choose)
        item->walker->choose();
    if (!item->stacks->scenario->fresh_thread) {
        bench_stacks_first(item->stacks, &run->path);
        descend(&run->path);
        return run->mismatch[0] ? -1 : 0;
    }
    for (size_t i = 0; i < warm_count + walk_count && !run->mismatch[0]; i++) {
        pthread_t thread;
        if (pthread_create(&thread, NULL, one_thread, run) != 0) {
            snprintf(run->mismatch, sizeof run->mismatch, "no thread");
            break;
        }
        pthread_join(thread, NULL);
    }
    return run->mismatch[0] ? -1 : 0;
}
