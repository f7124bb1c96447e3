// SPDX-License-Identifier: Apache-2.0
// A segment's other end: a process of its own that takes sealed chunks out while they are filled, and what was in them
// and in the segment at the end, counted by node and as sums of hashes.
#ifndef TESTS_PROOF_STORE_DRAIN_H
#define TESTS_PROOF_STORE_DRAIN_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include "tests/proof/store/decoder.h"

enum {
    DRAIN_THREADS = 8,
    DRAIN_DEPTHS = 4,
    DRAIN_VARIETIES = 3,
    DRAIN_PLACES = DRAIN_THREADS * DRAIN_DEPTHS * DRAIN_VARIETIES,
    DRAIN_EXTRA = 99, // the extra that says which hit it is
};

static inline uint32_t drain_place(uint32_t thread, uint32_t depth, uint32_t variety)
{
    return (thread * DRAIN_DEPTHS + depth) * DRAIN_VARIETIES + variety;
}

static inline uint64_t drain_hash(uint64_t number)
{
    number *= 0x9e3779b97f4a7c15u;
    return number ^ number >> 29;
}

struct tally {
    qut_trace_u64 samples[DRAIN_PLACES];
    qut_trace_u64 extra_hash, marks, mark_hash;
};

void tally_add(struct tally *to, const struct tally *from);
uint64_t tally_samples(const struct tally *tally);

// In memory that both processes have.
struct drain {
    char path[64];
    uint32_t nodes[DRAIN_PLACES]; // a node for each thread, depth of handlers and variety
    struct tally tally;
    uint64_t level_samples[QUT_TRACE_LEVELS];
    uint64_t samples_drained, chunks_drained;
    pid_t pid;
    volatile bool is_over;
    char fault[256]; // the first thing that was wrong
};

struct drain *drain_create(const char *name); // NULL: no memory
void drain_destroy(struct drain *drain);      // and the file

bool drain_nodes(struct drain *drain); // makes them; the trace is open
bool drain_start(struct drain *drain);
bool drain_stop(struct drain *drain);                                // false: `fault` says why
bool drain_rest(struct drain *drain, struct decoded_totals *totals); // what is in the segment now

#endif
