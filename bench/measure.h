// SPDX-License-Identifier: Apache-2.0
// What every benchmark here shares: the clock, medians with their spread, one processor, verdicts.
#ifndef QUT_BENCH_MEASURE_H
#define QUT_BENCH_MEASURE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

uint64_t bench_now_ns(void); // monotonic

struct bench_spread {
    double p10, median, p90;
};

// Sorts the values. All zero where there are none.
struct bench_spread bench_spread(double *values, size_t count);

// Moves this process to one processor and says which; -1 where that is refused. bench_unpin takes it back.
int bench_pin(void);
void bench_unpin(void);

// Prints a line "PASS  what" or "MISS  what".
void bench_verdict(bool pass, const char *format, ...) __attribute__((format(printf, 2, 3)));
unsigned bench_misses(void); // so far

#endif
