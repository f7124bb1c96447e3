// SPDX-License-Identifier: Apache-2.0
#include "bench/measure.h"

#include <sched.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

static unsigned misses;
static cpu_set_t allowed;

uint64_t bench_now_ns(void)
{
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (uint64_t)now.tv_sec * 1000000000u + (uint64_t)now.tv_nsec;
}

static int compare(const void *a, const void *b)
{
    double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

// Between the two nearest values, so that few rounds do not make the spread look narrower than it is.
static double quantile(const double *sorted, size_t count, double share)
{
    double place = share * (double)(count - 1);
    size_t below = (size_t)place;
    if (below + 1 >= count)
        return sorted[count - 1];
    return sorted[below] + (place - (double)below) * (sorted[below + 1] - sorted[below]);
}

struct bench_spread bench_spread(double *values, size_t count)
{
    if (!count)
        return (struct bench_spread){0};
    qsort(values, count, sizeof *values, compare);
    return (struct bench_spread){quantile(values, count, 0.1), quantile(values, count, 0.5),
                                 quantile(values, count, 0.9)};
}

int bench_pin(void)
{
    CPU_ZERO(&allowed);
    if (sched_getaffinity(0, sizeof allowed, &allowed) != 0)
        return -1;
    // The last one: interrupts and new processes tend to land on the first.
    for (int cpu = CPU_SETSIZE - 1; cpu >= 0; cpu--) {
        if (!CPU_ISSET((size_t)cpu, &allowed))
            continue;
        cpu_set_t one;
        CPU_ZERO(&one);
        CPU_SET((size_t)cpu, &one);
        return sched_setaffinity(0, sizeof one, &one) == 0 ? cpu : -1;
    }
    return -1;
}

void bench_unpin(void)
{
    if (CPU_COUNT(&allowed))
        sched_setaffinity(0, sizeof allowed, &allowed);
}

void bench_verdict(bool pass, const char *format, ...)
{
    va_list arguments;
    va_start(arguments, format);
    fputs(pass ? "PASS  " : "MISS  ", stdout);
    vprintf(format, arguments);
    putchar('\n');
    va_end(arguments);
    misses += !pass;
}

unsigned bench_misses(void)
{
    return misses;
}
