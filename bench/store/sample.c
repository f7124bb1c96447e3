// SPDX-License-Identifier: Apache-2.0
// Samples of a real stack that changes: what storing one costs behind its walk. Every contestant gets the same stacks
// in the same order. The tree with a lock gets all frames of each, as it was walked.
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <qut/qut.h>

#include "bench/measure.h"
#include "bench/store/mutex_tree.h"
#include "bench/store/parts.h"
#include "bench/store/stacks.h"
#include "libqut/trace/feed_sample.h"
#include "machine.h"

enum { DEPTH = 50, FRAMES_MAX = 256, STEP_NS = 1000000 };

enum contestant { NOTHING, WALK, STORE, SAMPLE, TREE, CONTESTANTS };
static const char *const titles[CONTESTANTS] = {
    "nothing", "walk", "**store: intern + append**", "sample: walk + store", "tree with a lock, malloc for each node",
};

struct set {
    const char *name;
    size_t step_count; // after so many the same ones come again; 0: never
    const char *what;
};
static const struct set sets[] = {
    {"small", 4096, "stacks that come again and again"},
    {"large", 0, "stacks whose nodes take more memory than the L2 cache has"},
};
enum { BRANCHING = 16 };

struct run {
    enum contestant contestant;
    struct mutex_tree *tree;
    uint64_t time_ns;
    uint32_t *ticks;
    size_t done;
    size_t failed;
    uintptr_t pcs[FRAMES_MAX];
};

static void take(void *context, size_t frame_count)
{
    struct run *run = context;
    (void)frame_count;
    struct qut_end end;
    run->time_ns += STEP_NS;
    struct qut_event event = {.time_ns = run->time_ns, .cpu_ns = run->time_ns, .kind = QUT_SAMPLE_CPU};
    size_t count = 0;
    uint64_t begin, ticks = 0;
    int stored = QUT_STORED;
    switch (run->contestant) {
    case NOTHING:
        begin = bench_ticks();
        ticks = bench_ticks() - begin;
        break;
    case WALK:
        begin = bench_ticks();
        count = qut_backtrace(run->pcs, FRAMES_MAX, &end);
        ticks = bench_ticks() - begin;
        break;
    case STORE:
        count = qut_backtrace(run->pcs, FRAMES_MAX, &end);
        begin = bench_ticks();
        stored = feed_trace_store_walk(run->pcs, count, NULL, 0, &end, false, &event);
        ticks = bench_ticks() - begin;
        break;
    case SAMPLE:
        begin = bench_ticks();
        stored = qut_trace_sample(NULL, &event);
        ticks = bench_ticks() - begin;
        break;
    case TREE:
        count = qut_backtrace(run->pcs, FRAMES_MAX, &end);
        begin = bench_ticks();
        mutex_tree_append(run->tree, run->pcs, count, event.time_ns, event.cpu_ns, 1);
        ticks = bench_ticks() - begin;
        break;
    default: break;
    }
    run->failed += stored < 0;
    run->ticks[run->done++] = (uint32_t)ticks;
}

static int compare(const void *left, const void *right)
{
    uint32_t a = *(const uint32_t *)left, b = *(const uint32_t *)right;
    return (a > b) - (a < b);
}

struct figures {
    double p50[STORE_ROUNDS_MAX], p99[STORE_ROUNDS_MAX], mean[STORE_ROUNDS_MAX];
};

static double ns_per_tick(void)
{
    uint64_t begin_ns = bench_now_ns(), begin = bench_ticks();
    while (bench_now_ns() - begin_ns < 20000000)
        ;
    return (double)(bench_now_ns() - begin_ns) / (double)(bench_ticks() - begin);
}

// A round of one contestant. `nothing` is subtracted.
static void measure(struct run *run, const struct set *set, size_t step_count, double tick_ns, double nothing,
                    struct figures *figures, size_t round, size_t *changed_frames)
{
    struct store_stacks stacks = {.depth_mean = DEPTH, .branching = BRANCHING, .take = take, .context = run};
    run->done = 0;
    *changed_frames = 0;
    while (run->done < step_count) {
        size_t left = step_count - run->done;
        store_stacks_run(&stacks, 7, set->step_count && set->step_count < left ? set->step_count : left);
        *changed_frames += stacks.changed_frames;
    }
    double sum = 0;
    for (size_t i = 0; i < run->done; i++)
        sum += run->ticks[i];
    qsort(run->ticks, run->done, sizeof *run->ticks, compare);
    figures->p50[round] = run->ticks[run->done / 2] * tick_ns - nothing;
    figures->p99[round] = run->ticks[run->done - run->done / 100] * tick_ns - nothing;
    figures->mean[round] = sum / (double)run->done * tick_ns - nothing;
}

static void print_row(const char *title, struct figures *figures, size_t round_count)
{
    struct bench_spread p50 = bench_spread(figures->p50, round_count);
    struct bench_spread p99 = bench_spread(figures->p99, round_count);
    struct bench_spread mean = bench_spread(figures->mean, round_count);
    printf("| %s | %.0f (%.0f - %.0f) | %.0f (%.0f - %.0f) | %.0f |\n", title, p50.median, p50.p10, p50.p90, p99.median,
           p99.p10, p99.p90, mean.median);
}

static int run_set(const struct set *set, const struct store_request *request, double p50_limit, double p99_limit,
                   double *store_p50, double *store_p99)
{
    static struct figures figures[CONTESTANTS], first;
    struct run run = {.time_ns = bench_now_ns(), .ticks = malloc(request->step_count * sizeof *run.ticks)};
    run.tree = mutex_tree_new(1 << 20);
    if (!run.ticks || !run.tree || store_open(256u << 20) != 0)
        return -1;
    double tick_ns = ns_per_tick(), nothing = 0;
    size_t changed_frames = 0;
    for (size_t round = 0; round <= request->round_count; round++) // the first brings all nodes in
        for (int contestant = 0; contestant < CONTESTANTS; contestant++) {
            run.contestant = (enum contestant)contestant;
            size_t place = round ? round - 1 : 0;
            measure(&run, set, request->step_count, tick_ns, contestant == NOTHING ? 0 : nothing, &figures[contestant],
                    place, &changed_frames);
            if (contestant == NOTHING)
                nothing = figures[NOTHING].p50[place];
            if (round == 0 && contestant == STORE) {
                first.p50[0] = figures[STORE].p50[0];
                first.p99[0] = figures[STORE].p99[0];
                first.mean[0] = figures[STORE].mean[0];
            }
        }
    struct qut_trace_counters_now counts;
    qut_trace_get_counts(&counts, sizeof counts);
    printf("%s: %zu samples of %d frames or so, %.2f of them new in each; %llu nodes, %zu in the other tree\n\n",
           set->what, request->step_count, DEPTH, (double)changed_frames / (double)request->step_count,
           (unsigned long long)counts.node_count, mutex_tree_node_count(run.tree));
    puts("| ns | median (p10 - p90 of the rounds) | 99th percentile | mean |\n|---|---:|---:|---:|");
    for (int contestant = WALK; contestant < CONTESTANTS; contestant++) {
        print_row(titles[contestant], &figures[contestant], request->round_count);
        if (contestant == STORE)
            print_row("the same, when the nodes are new (one round)", &first, 1);
    }
    printf("\nbytes of a node: 8; in the other tree: %.0f\n\n",
           (double)mutex_tree_bytes(run.tree) / (double)mutex_tree_node_count(run.tree));
    *store_p50 = bench_spread(figures[STORE].p50, request->round_count).median;
    *store_p99 = bench_spread(figures[STORE].p99, request->round_count).median;
    bench_verdict(*store_p50 <= p50_limit, "%s: intern + append, median %.0f ns, at most %.0f", set->name, *store_p50,
                  p50_limit);
    bench_verdict(*store_p99 <= p99_limit, "%s: intern + append, 99th percentile %.0f ns, at most %.0f", set->name,
                  *store_p99, p99_limit);
    bench_verdict(run.failed == 0, "%s: %zu samples were not stored", set->name, run.failed);
    puts("");
    qut_trace_close();
    mutex_tree_free(run.tree);
    free(run.ticks);
    return 0;
}

int store_part_sample(const struct store_request *request)
{
    if (store_begin() != 0)
        return -1;
    bench_pin();
    double p50, p99, large_p50, large_p99;
    int result = run_set(&sets[0], request, 100, 300, &p50, &p99);
    if (result == 0)
        result = run_set(&sets[1], request, 120, 600, &large_p50, &large_p99);
    bench_unpin();
    if (result != 0)
        fputs("bench_store: no memory\n", stderr);
    return result;
}
