// SPDX-License-Identifier: Apache-2.0
// The parts of bench_store. Each prints markdown and verdicts; returns 0, or -1 after a line on stderr.
#ifndef QUT_BENCH_STORE_PARTS_H
#define QUT_BENCH_STORE_PARTS_H

#include <stddef.h>
#include <stdint.h>

enum { STORE_ROUNDS_MAX = 99 };

struct store_request {
    size_t round_count, step_count;
};

int store_part_append(const struct store_request *request);  // of nodes that are known
int store_part_sample(const struct store_request *request);  // of real stacks, beside a tree with a lock
int store_part_writers(const struct store_request *request); // two threads beside one

// qut_start, once, with tables of all that is loaded; registers the calling thread. 0, or -1 after a line on stderr.
int store_begin(void);
// A new, empty trace, of so many bytes. 0, or -1 after a line on stderr.
int store_open(uint64_t segment_bytes);

#endif
