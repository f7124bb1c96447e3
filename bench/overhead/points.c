// SPDX-License-Identifier: Apache-2.0
// What a sync point costs: beside the plain call, in one process. Prints ns: median of the rounds, lowest and highest.
//   bench_overhead_points [ROUNDS]
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <qut/qut.h>
#include <qutc/provide.h>

#include "base/clock_inline.h"

enum { CALLS = 200000, TAKEN = 2000, ROUNDS_MAX = 101, DEPTH = 30 };

// The call that is watched: something that is not inlined, and does next to nothing.
static __attribute__((noinline)) uint64_t plain(uint64_t size)
{
    __asm__ volatile("" : "+r"(size)::"memory");
    return size;
}

static __attribute__((noinline)) uint64_t watched(uint64_t size)
{
    if (__builtin_expect(qut_sync_hit(QUT_TOTAL_ALLOCATIONS, size), false))
        qut_sync_take(&(struct qut_event){.kind = QUT_SAMPLE_ALLOCATE});
    return plain(size);
}

static __attribute__((noinline)) uint64_t scoped(uint64_t size)
{
    struct qut_scope scope = {.kind = QUT_SAMPLE_READ};
    qut_scope_begin(&scope);
    size = plain(size);
    qut_scope_end(&scope, QUT_TOTAL_BLOCKED_CALLS, 1000000, NULL, 0);
    return size;
}

static double time_of(uint64_t (*call)(uint64_t), unsigned count)
{
    uint64_t began = base_clock_now_ns(), sum = 0;
    for (unsigned i = 0; i < count; i++)
        sum += call(i);
    __asm__ volatile("" ::"r"(sum));
    return (double)(base_clock_now_ns() - began) / count;
}

static __attribute__((noinline)) uint64_t take(uint64_t size)
{
    uint64_t address = size; // differs from the one before: an extra, so that it is not merged
    qut_sync_take(&(struct qut_event){
        .kind = QUT_SAMPLE_ALLOCATE, .extras = &(struct qut_extra){QUT_EXTRA_SIZE, 0, address}, .extra_count = 1});
    return size;
}

// `depth` frames further in.
static __attribute__((noinline)) double time_at_depth(unsigned depth, uint64_t (*call)(uint64_t), unsigned count)
{
    volatile double result = depth > 1 ? time_at_depth(depth - 1, call, count) : time_of(call, count);
    return result;
}

static int compare(const void *a, const void *b)
{
    double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

static void say(const char *what, double *values, unsigned count)
{
    qsort(values, count, sizeof *values, compare);
    printf("%s %.1f %.1f %.1f\n", what, values[count / 2], values[0], values[count - 1]);
}

int main(int argc, char **argv)
{
    unsigned rounds = argc > 1 ? (unsigned)atoi(argv[1]) : 21;
    static double throttled[ROUNDS_MAX], scopes[ROUNDS_MAX], taken[ROUNDS_MAX], deeper[ROUNDS_MAX];
    if (rounds < 1 || rounds > ROUNDS_MAX) {
        fprintf(stderr, "points: 1 to %d rounds\n", ROUNDS_MAX);
        return 2;
    }
    struct qut_options walks = {.size = sizeof walks, .compile = qutc_compile_for_qut};
    struct qut_trace_options trace = {.size = sizeof trace, .flags = QUT_TRACE_CPU_TIME};
    // So long between two samples that nearly all hits are throttled.
    struct qut_sampling_options sampling = {
        .size = sizeof sampling, .trigger = QUT_TRIGGER_NONE, .sync_interval_ns = 1000000000};
    int error = qut_start(&walks);
    if (error == 0)
        error = qut_wait(60000);
    if (error == 0)
        error = qut_trace_open(&trace);
    if (error == 0)
        error = qut_sampling_start(&sampling);
    if (error != 0) {
        fprintf(stderr, "points: %s\n", strerror(-error));
        return 2;
    }
    for (unsigned i = 0; i < rounds; i++) {
        double by_itself = time_of(plain, CALLS);
        throttled[i] = time_of(watched, CALLS) - by_itself;
        scopes[i] = time_of(scoped, CALLS) - by_itself;
        taken[i] = time_at_depth(DEPTH, take, TAKEN) - by_itself;
        deeper[i] = time_at_depth(100, take, TAKEN) - by_itself;
    }
    say("throttled", throttled, rounds);
    say("scope", scopes, rounds);
    say("taken-30", taken, rounds);
    say("taken-100", deeper, rounds);
    qut_sampling_stop();
    qut_trace_close();
    return 0;
}
