// SPDX-License-Identifier: Apache-2.0
// Hits of all sorts through the public functions, and what a thread handed in and was told, counted by itself with
// single atomic instructions, in memory that outlives the process.
#ifndef TESTS_PROOF_STORE_HITS_H
#define TESTS_PROOF_STORE_HITS_H

#include "tests/proof/store/drain.h"

struct hits {
    struct tally told;  // what the store said that it kept
    qut_trace_u64 hits; // begun
    qut_trace_u64 stored, merged, not_stored, skipped, added, deepest;
} __attribute__((aligned(64)));

// The calling thread's; NULL: it is not to append.
extern _Thread_local struct hits *volatile hits_mine;

struct hits *hits_create(void);        // DRAIN_THREADS of them; NULL: no memory
void hits_are_of(struct drain *drain); // before threads begin
void hits_begin(struct hits *hits, uint32_t index);
void hits_one(struct hits *hits);
void hits_on_tick(void); // in a handler

#endif
