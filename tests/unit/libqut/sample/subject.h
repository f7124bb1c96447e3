// SPDX-License-Identifier: Apache-2.0
// What these tests share: a trace, sampling, and threads that use up time.
#ifndef TESTS_UNIT_LIBQUT_SAMPLE_SUBJECT_H
#define TESTS_UNIT_LIBQUT_SAMPLE_SUBJECT_H

#include <errno.h>
#include <stdbool.h>
#include <stdint.h>
#include <string.h>
#include <time.h>

#include <qut/qut.h>

#include "tests/support/tap.h"

#define SHARED __attribute__((unused)) static

// qut_start without tables, qut_trace_open.
SHARED void subject_open(uint32_t flags, uint32_t metric_mask)
{
    struct qut_options options = {.size = sizeof options, .flags = QUT_START_NO_THREAD};
    struct qut_trace_options trace = {
        .size = sizeof trace, .segment_bytes = 8 << 20, .flags = flags, .metric_mask = metric_mask};
    int result = qut_start(&options);
    CHECK(result == 0 || result == -EALREADY, "qut_start: %d", result);
    result = qut_trace_open(&trace);
    CHECK(result == 0, "qut_trace_open: %d", result);
}

SHARED void subject_close(void)
{
    qut_sampling_stop();
    qut_trace_close();
}

SHARED int subject_sample(uint32_t trigger, uint64_t period_ns)
{
    struct qut_sampling_options options = {.size = sizeof options, .trigger = trigger, .period_ns = period_ns};
    return qut_sampling_start(&options);
}

// Else says so, as SKIP.
SHARED bool subject_has(uint32_t trigger)
{
    subject_open(0, 0);
    int result = subject_sample(trigger, 0);
    subject_close();
    if (result != 0)
        tap_skip("trigger %u cannot be had here: %s", trigger, strerror(-result));
    return result == 0;
}

SHARED uint64_t subject_cpu_ns(void)
{
    struct timespec now;
    clock_gettime(CLOCK_THREAD_CPUTIME_ID, &now);
    return (uint64_t)now.tv_sec * 1000000000u + (uint64_t)now.tv_nsec;
}

// Of processor time, nearly all of it in user mode.
SHARED void subject_spin_ms(unsigned milliseconds)
{
    enum { ROUND = 200000 }; // so many that asking for the time does not matter
    static _Thread_local volatile unsigned sink;
    uint64_t begin_ns = subject_cpu_ns();
    while (subject_cpu_ns() - begin_ns < (uint64_t)milliseconds * 1000000u)
        for (int i = 0; i < ROUND; i++)
            sink = sink + 1;
}

SHARED uint64_t subject_now_ms(void)
{
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (uint64_t)now.tv_sec * 1000u + (uint64_t)now.tv_nsec / 1000000u;
}

// False: it took too long.
SHARED bool subject_wait_for(volatile int *word, int value)
{
    enum { PATIENCE_MS = 20000 };
    uint64_t begin_ms = subject_now_ms();
    while (__atomic_load_n(word, __ATOMIC_ACQUIRE) != value) {
        struct timespec moment = {0, 1000000};
        clock_nanosleep(CLOCK_MONOTONIC, 0, &moment, NULL);
        if (subject_now_ms() - begin_ms > PATIENCE_MS)
            return false;
    }
    return true;
}

SHARED struct qut_sampling_counters subject_counts(void)
{
    struct qut_sampling_counters counts;
    qut_sampling_get_counters(&counts, sizeof counts);
    return counts;
}

// due = taken + ..., hits = stored + ...
SHARED void subject_check_balance(const char *when)
{
    struct qut_sampling_counters ticks = subject_counts();
    struct qut_trace_counters_now hits;
    uint64_t sum = ticks.taken + ticks.late + ticks.kernel + ticks.lost;
    CHECK(ticks.due == sum, "%s: %llu due, %llu accounted for", when, (unsigned long long)ticks.due,
          (unsigned long long)sum);
    qut_trace_get_counts(&hits, sizeof hits);
    sum = hits.stored + hits.merged + hits.throttled + hits.under_way;
    for (unsigned i = 0; i < sizeof hits.lost / sizeof *hits.lost; i++)
        sum += hits.lost[i];
    CHECK(hits.hits == sum, "%s: %llu hits, %llu accounted for", when, (unsigned long long)hits.hits,
          (unsigned long long)sum);
}

#endif
