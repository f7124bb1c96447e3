// SPDX-License-Identifier: Apache-2.0
// A sample whose node is known: encoded and stored, or merged. The event carries its time, as it does where the clock
// was read for other reasons as well; what reading it costs stands beside.
#include <stdio.h>
#include <stdlib.h>

#include <qut/qut.h>

#include "bench/measure.h"
#include "bench/store/parts.h"

enum { NODES = 4096, STEP_NS = 1000000, TARGET_NS = 20 };

enum what { CLOCK, MERGED, FEW, NEW, NEW_CPU, NEW_METRICS, NEW_CLOCK, WHATS };
static const char *const titles[WHATS] = {
    "reading the clock",
    "append, merged into the one before",
    "append of another node, of 64",
    "append of another known node, of 4096 in random order",
    "the same, with processor time",
    "the same, with processor time and four metrics",
    "append of another known node, the clock read by it",
};

static uint32_t nodes[NODES];
static volatile uint64_t sink; // so that the clock is read

static int make_nodes(void)
{
    for (uintptr_t i = 0; i < NODES; i++) {
        uint32_t parent = 0;
        for (uintptr_t level = 0; level < 3; level++)
            parent = qut_trace_node(parent, 0x10000 + level * 0x1000000 + (i >> (8 - 4 * level)) * 16, 0);
        nodes[i] = parent;
        if (parent == 0)
            return -1;
    }
    return 0;
}

static double measure(enum what what, size_t step_count)
{
    static uint64_t time_ns;
    uint64_t metrics[QUT_METRIC_COUNT] = {0};
    if (time_ns == 0)
        time_ns = bench_now_ns();
    uint64_t random = 88172645463325252u;
    uint64_t begin_ns = bench_now_ns();
    for (size_t i = 0; i < step_count; i++) {
        if (what == CLOCK) {
            sink += bench_now_ns();
            continue;
        }
        random ^= random << 13, random ^= random >> 7, random ^= random << 17;
        struct qut_event event = {.kind = QUT_SAMPLE_CPU, .flags = QUT_EVENT_ON_CPU};
        time_ns += STEP_NS + (random & 0xffff);
        event.time_ns = what == NEW_CLOCK ? 0 : time_ns;
        event.cpu_ns = what <= NEW ? 1 : time_ns - (random & 0xfff);
        if (what == NEW_METRICS) {
            metrics[QUT_METRIC_MINOR_FAULTS] += random & 3;
            metrics[QUT_METRIC_VOLUNTARY_SWITCHES] += random >> 8 & 1;
            event.metrics = metrics;
        }
        size_t most = what == MERGED ? 0 : what == FEW ? 63 : NODES - 1;
        qut_trace_append_node(nodes[random >> 32 & most], &event);
    }
    return (double)(bench_now_ns() - begin_ns) / (double)step_count;
}

static int measure_rounds(int from, int to, const struct store_request *request, double ns[WHATS][STORE_ROUNDS_MAX])
{
    if (store_open(256u << 20) != 0)
        return -1;
    if (make_nodes() != 0) {
        fputs("bench_store: no room for nodes\n", stderr);
        return -1;
    }
    for (size_t round = 0; round < request->round_count; round++)
        for (int what = from; what < to; what++)
            ns[what][round] = measure((enum what)what, request->step_count);
    qut_trace_close();
    return 0;
}

int store_part_append(const struct store_request *request)
{
    static double ns[WHATS][STORE_ROUNDS_MAX];
    if (store_begin() != 0)
        return -1;
    // By itself, in a trace of its own: the others' times run ahead of the clock, and what is behind them is no append
    // as others.
    if (measure_rounds(NEW_CLOCK, WHATS, request, ns) != 0 || measure_rounds(CLOCK, NEW_CLOCK, request, ns) != 0)
        return -1;
    puts("| one sample | ns, median (p10 - p90) |\n|---|---:|");
    struct bench_spread spreads[WHATS];
    for (int what = 0; what < WHATS; what++) {
        spreads[what] = bench_spread(ns[what], request->round_count);
        printf("| %s | %.1f (%.1f - %.1f) |\n", titles[what], spreads[what].median, spreads[what].p10,
               spreads[what].p90);
    }
    puts("");
    for (int what = MERGED; what <= NEW_CPU; what++)
        bench_verdict(spreads[what].median <= TARGET_NS, "%s: %.1f ns, at most %d", titles[what], spreads[what].median,
                      TARGET_NS);
    puts("");
    return 0;
}
