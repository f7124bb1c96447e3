// SPDX-License-Identifier: Apache-2.0
// The contestants on one file, in rounds: each round every one once, so that whatever else the machine does meets all
// of them alike; what counts is the median of the ratios within rounds.
#ifndef BENCH_COMPILE_COMPILE_ROUNDS_H
#define BENCH_COMPILE_COMPILE_ROUNDS_H

#include <stdbool.h>

#include "base/error.h"

enum { BENCH_ROUNDS_MAX = 1000 };

// Prints the table and the verdicts. Without peers: decoding and QUT alone.
int bench_compile_rounds(const char *path, unsigned rounds, bool with_peers, struct base_error *error);

#endif
