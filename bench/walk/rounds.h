// SPDX-License-Identifier: Apache-2.0
// Rounds in which every walker gets its turn: timed, counted, or in a fresh process.
#ifndef QUT_BENCH_WALK_ROUNDS_H
#define QUT_BENCH_WALK_ROUNDS_H

#include "bench/walk/run.h"

enum { BENCH_MAX_ITEMS = 64 };

struct bench_request {
    const struct bench_scenario *scenario;
    size_t depth;
    struct bench_item items[BENCH_MAX_ITEMS];
    size_t item_count;
    size_t round_count;
    size_t walk_count; // of each batch; 0: as many as fit into a millisecond
    const char *spoiled;
};

// All print lines to stdout and return 0, or -1 after a line about a mismatch on stderr.
//   walk SCENARIO DEPTH CODE WALKER ROUND NS      a walk's mean, less that of none
int bench_rounds_timed(struct bench_request *request);
//   count SCENARIO DEPTH CODE WALKER WALKS        after so many calls of bench_count_on and bench_count_off
int bench_rounds_counted(struct bench_request *request);
//   first SCENARIO DEPTH CODE WALKER FIRST_NS SECOND_NS     of a process that has not walked before; the last walker
int bench_rounds_fresh(struct bench_request *request);

#endif
