// SPDX-License-Identifier: Apache-2.0
// What calls come to: for each function, and for each way of calls that leads to one.
#ifndef TRACER_CALL_TIMES_SUMS_H
#define TRACER_CALL_TIMES_SUMS_H

#include "tracer/call_times/walk.h"

enum {
    CALL_TIMES_NODES_MAX = 1 << 20,
    CALL_TIMES_BUCKETS = 64, // the i-th has calls of 2^i to 2^(i+1) - 1 ns; the first also those of 0
};

struct call_times_function {
    uint64_t calls; // that made events
    uint64_t how[CALL_TIMES_HOW_COUNT];
    uint64_t total_ns;       // with what it called; a call within one of the same function is not added again
    uint64_t self_ns;        // without the traced functions that it called
    uint64_t min_ns, max_ns; // of a call, as the histogram: of those of which the end is known (neither open nor lost)
    uint64_t ended;          // how many these are
    uint64_t histogram[CALL_TIMES_BUCKETS];
};

struct call_times_node {
    uint32_t parent; // 0: the root, which is nodes[0], no call
    uint32_t function;
    uint32_t depth;
    bool is_within; // a call of the same function
    uint64_t calls, total_ns, self_ns;
};

struct call_times_sums {
    struct call_times_account account;
    struct call_times_function *functions; // as the part has them
    size_t function_count;
    struct {
        BASE_VECTOR(struct call_times_node);
    } nodes;         // a parent stands before its children
    uint64_t folded; // calls that had no room in the tree: they are part of the nearest that has
};

// What is wanted of it: calls that began in this time, of threads that are set (NULL: all). The account is of all.
struct call_times_part {
    uint64_t from_ns, to_ns;
    const bool *threads;
};

// 0; or -1, *error filled: no memory.
int call_times_sum(struct call_times_sums *sums, const struct call_events *calls, const struct call_times_part *part,
                   struct base_error *error);
void call_times_sums_free(struct call_times_sums *sums);
// Nodes' indices, the root left out: each behind its parent, siblings with the largest total first. NULL: no memory;
// else free() it.
uint32_t *call_times_tree_order(const struct call_times_sums *sums);

#endif
