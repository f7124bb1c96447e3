// SPDX-License-Identifier: Apache-2.0
// Two threads on two processors that intern and append, beside one that does the same amount: what they have in common
// (the tree, the pool of chunks) should not slow them down.
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>

#include <qut/qut.h>

#include "bench/measure.h"
#include "bench/store/parts.h"

enum { DEPTH = 8, FUNCTIONS = 6 };

struct writer {
    pthread_t thread;
    uint64_t seed;
    size_t step_count;
    _Atomic uint32_t *waiting;
    uint64_t took_ns;
};

// Stacks that both build from the same calls, so that they meet in the tree.
static void *write_samples(void *argument)
{
    struct writer *writer = argument;
    uint64_t random = writer->seed, time_ns = bench_now_ns();
    qut_trace_thread_register();
    atomic_fetch_sub_explicit(writer->waiting, 1, memory_order_acq_rel);
    while (atomic_load_explicit(writer->waiting, memory_order_acquire) != 0)
        ;
    uint32_t nodes[DEPTH + 1] = {0};
    uint64_t begin_ns = bench_now_ns();
    for (size_t i = 0; i < writer->step_count; i++) {
        random ^= random << 13, random ^= random >> 7, random ^= random << 17;
        size_t kept = i == 0 ? 0 : DEPTH - 1 - (random >> 20) % 2;
        for (size_t level = kept; level < DEPTH; level++)
            nodes[level + 1] = qut_trace_node(nodes[level], 0x10000 + (random >> (8 * level + 3)) % FUNCTIONS * 64, 0);
        time_ns += 1000000;
        struct qut_event event = {.time_ns = time_ns, .cpu_ns = time_ns, .kind = QUT_SAMPLE_CPU};
        qut_trace_append_node(nodes[DEPTH], &event);
    }
    writer->took_ns = bench_now_ns() - begin_ns;
    return NULL;
}

// The time of the slower one, for each sample. Negative: no thread.
static double measure(size_t writer_count, size_t step_count)
{
    struct writer writers[2];
    _Atomic uint32_t waiting = (uint32_t)writer_count;
    for (size_t i = 0; i < writer_count; i++) {
        writers[i] = (struct writer){.seed = 88172645463325252u + i, .step_count = step_count, .waiting = &waiting};
        if (pthread_create(&writers[i].thread, NULL, write_samples, &writers[i]) != 0)
            return -1;
    }
    uint64_t slowest_ns = 0;
    for (size_t i = 0; i < writer_count; i++) {
        pthread_join(writers[i].thread, NULL);
        if (writers[i].took_ns > slowest_ns)
            slowest_ns = writers[i].took_ns;
    }
    return (double)slowest_ns / (double)step_count;
}

int store_part_writers(const struct store_request *request)
{
    static double one[STORE_ROUNDS_MAX], two[STORE_ROUNDS_MAX], ratio[STORE_ROUNDS_MAX];
    if (store_begin() != 0 || store_open(256u << 20) != 0)
        return -1;
    bench_unpin();
    for (size_t round = 0; round < request->round_count; round++) {
        one[round] = measure(1, request->step_count);
        two[round] = measure(2, request->step_count);
        ratio[round] = two[round] / one[round];
    }
    qut_trace_close();
    struct bench_spread of_one = bench_spread(one, request->round_count);
    struct bench_spread of_two = bench_spread(two, request->round_count);
    struct bench_spread of_both = bench_spread(ratio, request->round_count);
    printf("| writers | ns a sample, median (p10 - p90) |\n|---|---:|\n"
           "| 1 | %.1f (%.1f - %.1f) |\n| 2, on 2 processors, each as many | %.1f (%.1f - %.1f) |\n\n",
           of_one.median, of_one.p10, of_one.p90, of_two.median, of_two.p10, of_two.p90);
    bench_verdict(of_both.median <= 1.5, "two writers / one: %.2f (%.2f - %.2f), at most 1.5", of_both.median,
                  of_both.p10, of_both.p90);
    puts("");
    return 0;
}
