// SPDX-License-Identifier: Apache-2.0
#include "bench/walk/rounds.h"

#include <stdio.h>
#include <stdlib.h>

#include "bench/measure.h"
#include "machine.h"

static struct bench_run run;

static double ticks_per_ns(void)
{
    uint64_t begin_ns = bench_now_ns(), begin = bench_ticks(), now_ns;
    do
        now_ns = bench_now_ns();
    while (now_ns < begin_ns + 20000000);
    return (double)(bench_ticks() - begin) / (double)(now_ns - begin_ns);
}

// A processor core can have a neighbour on its other half: then what is bound by its width takes up to twice as long,
// and what waits for loads, as a chase of frame pointers does, takes no longer. This says how wide it is just now.
static double core_ns(double per_ns)
{
    enum { TURNS = 20000 };
    uint64_t a = 1, b = 2, c = 3, d = 4, e = 5, f = 6;
    uint64_t begin = bench_ticks();
    for (unsigned i = 0; i < TURNS; i++) {
        a += i, b += i, c += i, d += i, e += i, f += i;
        __asm__ volatile("" : "+r"(a), "+r"(b), "+r"(c), "+r"(d), "+r"(e), "+r"(f));
    }
    return (double)(bench_ticks() - begin) / per_ns / TURNS;
}

static int compare_ticks(const void *a, const void *b)
{
    uint64_t x = *(const uint64_t *)a, y = *(const uint64_t *)b;
    return (x > y) - (x < y);
}

// Of the last batch. Interrupts are dropped: what took twice the median and some. The rest is averaged, since a clock
// that moves in steps of 10 ns makes medians move in such steps as well.
static double mean_ticks(void)
{
    size_t count = run.walk_count, used = 0;
    double sum = 0;
    qsort(run.ticks, count, sizeof *run.ticks, compare_ticks);
    uint64_t limit = 2 * run.ticks[count / 2] + 100;
    for (; used < count && run.ticks[used] <= limit; used++)
        sum += (double)run.ticks[used];
    return sum / (double)used;
}

static int walk(const struct bench_request *request, struct bench_item *item, size_t warm_count, size_t walk_count)
{
    run.spoiled = request->spoiled;
    if (bench_run_walks(&run, item, warm_count, walk_count) == 0)
        return 0;
    fprintf(stderr, "mismatch: %s, depth %zu, %s, %s: %s\n", request->scenario->name, request->depth,
            bench_code_names[item->code], item->walker->name, run.mismatch);
    return -1;
}

// So many that whatever learns has seen all functions, where each walk sees others; else a few rounds of the variants.
static size_t learning_walks(const struct bench_request *request)
{
    if (request->scenario->change == BENCH_CHANGE_RANDOM)
        return 3 * BENCH_ALL_FUNCTIONS / request->depth;
    // Of ten times as many draws as there are functions, one in 20,000 is left out. Of the changed frames one is a
    // leaf.
    if (request->scenario->change == BENCH_CHANGE_KNOWN)
        return 10 * BENCH_KNOWN_FUNCTIONS /
               ((request->scenario->frames ? request->scenario->frames : request->depth) - 1);
    return request->scenario->cold_memory ? 1 : 4 * BENCH_VARIANTS;
}

static size_t batch_walks(const struct bench_request *request, double walk_ns)
{
    if (request->walk_count)
        return request->walk_count;
    if (request->scenario->cold_memory)
        return 4;
    if (request->scenario->fresh_thread)
        return 24;
    double fit = 1e6 / (walk_ns + 100);
    size_t most = request->scenario->cold_l2 ? 40 : 1000;
    return fit < 10 ? 10 : fit > (double)most ? most : (size_t)fit;
}

// Where that matters, all variants are seen before: a few times, unless it takes too long.
static size_t batch_warm_walks(const struct bench_request *request, size_t walk_count)
{
    if (request->scenario->change == BENCH_CHANGE_RANDOM || request->scenario->fresh_thread)
        return 1;
    if (request->scenario->cold_memory || request->scenario->cold_l2)
        return 2;
    if (request->scenario->change == BENCH_CHANGE_KNOWN) // who had the turn before has used the caches
        return learning_walks(request);
    return walk_count < 4 * BENCH_VARIANTS ? BENCH_VARIANTS : 4 * BENCH_VARIANTS;
}

int bench_rounds_timed(struct bench_request *request)
{
    double per_ns = ticks_per_ns();
    size_t walk_counts[BENCH_MAX_ITEMS];
    double ticks[BENCH_MAX_ITEMS];
    bench_run_prepare(&run);
    for (size_t i = 0; i < request->item_count; i++) {
        if (walk(request, &request->items[i], learning_walks(request), request->scenario->cold_memory ? 1 : 8) != 0)
            return -1;
        walk_counts[i] = batch_walks(request, mean_ticks() / per_ns);
    }
    for (size_t round = 0; round < request->round_count; round++) {
        double core_before_ns = core_ns(per_ns);
        for (size_t turn = 0; turn < request->item_count; turn++) {
            size_t i = (turn + round) % request->item_count;
            if (walk(request, &request->items[i], batch_warm_walks(request, walk_counts[i]), walk_counts[i]) != 0)
                return -1;
            ticks[i] = mean_ticks();
        }
        double core_after_ns = core_ns(per_ns);
        printf("core %s %zu - - %zu %.4f\n", request->scenario->name, request->depth, round,
               core_before_ns > core_after_ns ? core_before_ns : core_after_ns);
        // What is measured around a walk is measured through the same code: the items come in the order of codes, each
        // beginning with the walker of nothing.
        double nothing = 0;
        for (size_t i = 0; i < request->item_count; i++) {
            const struct bench_item *item = &request->items[i];
            if (item->walker->walks_nothing)
                nothing = item->walker == &bench_walker_nothing ? ticks[i] : nothing;
            printf("walk %s %zu %s %s %zu %.3f\n", request->scenario->name, request->depth,
                   bench_code_names[item->code], item->walker->name, round,
                   (item->walker == &bench_walker_nothing ? ticks[i] : ticks[i] - nothing) / per_ns);
        }
    }
    return 0;
}

int bench_rounds_counted(struct bench_request *request)
{
    run.counting = true;
    bench_run_prepare(&run);
    size_t walk_count = request->walk_count ? request->walk_count : 100;
    for (size_t i = 0; i < request->item_count; i++) {
        struct bench_item *item = &request->items[i];
        // Its frames are learnt without marks: a first walk may be shorter than all others.
        if (walk(request, item, learning_walks(request), 0) != 0 ||
            walk(request, item, batch_warm_walks(request, walk_count), walk_count) != 0)
            return -1;
        printf("count %s %zu %s %s %zu\n", request->scenario->name, request->depth, bench_code_names[item->code],
               item->walker->name, walk_count);
        fflush(stdout);
    }
    return 0;
}

int bench_rounds_fresh(struct bench_request *request)
{
    double per_ns = ticks_per_ns();
    bench_run_prepare(&run);
    struct bench_item *nothing = &request->items[0], *item = nothing;
    for (size_t i = 0; i < request->item_count; i++)
        if (!request->items[i].walker->walks_nothing)
            item = &request->items[i];
    if (walk(request, nothing, 16, 100) != 0)
        return -1;
    double around = mean_ticks();
    if (walk(request, item, 0, 2) != 0)
        return -1;
    printf("first %s %zu %s %s %.3f %.3f\n", request->scenario->name, request->depth, bench_code_names[item->code],
           item->walker->name, ((double)run.ticks[0] - around) / per_ns, ((double)run.ticks[1] - around) / per_ns);
    return 0;
}
