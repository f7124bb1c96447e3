// SPDX-License-Identifier: Apache-2.0
// What a segment must hold, kept beside it in memory that is shared with the checker. Each writer (a thread's level)
// appends a sequence of its own: the number of an append says all that it stores, and its time is its number. So
// whatever is decoded can be compared with what was to be stored, one by one, and nothing can be missing unseen.
#ifndef TESTS_PROOF_STORE_SHADOW_H
#define TESTS_PROOF_STORE_SHADOW_H

#include <stdbool.h>
#include <stdint.h>

#include "libqut/segment/segment.h"
#include "tests/proof/store/decoder.h"

enum {
    SHADOW_THREADS = 8,
    SHADOW_NODES = 61,
    SHADOW_STEP_UNITS = 16, // of time, from one append to the next
    SHADOW_DOUBTS = 4096,
};

// What is appended: 0 where it never is.
struct shadow_plan {
    uint32_t run_length;  // so many neighbours are equal, and merge
    uint32_t mark_every;  // each so-many-th append is a mark
    uint32_t extra_every; // each so-many-th sample carries extras
    bool has_metrics;
};

struct shadow_writer {
    volatile uint64_t begun, done; // appends; those from `done` on may be there or not
    volatile uint64_t lost;        // of those done: refused, and said so
    volatile uint32_t doubt_count;
    volatile uint64_t doubts[SHADOW_DOUBTS]; // numbers, ascending, of those that may be missing
};

struct shadow_thread {
    volatile uint32_t uid;
    volatile uint32_t hits;    // appends that are no marks and have begun: refused ones too
    volatile uint32_t refused; // nested deeper than there are levels
    struct shadow_writer writers[QUT_TRACE_LEVELS];
};

struct shadow {
    struct shadow_plan plan;
    uint64_t start_units;
    uint32_t nodes[SHADOW_NODES];
    struct shadow_thread threads[SHADOW_THREADS];
    volatile uint32_t hits_in_doubt; // jumped out of between the store's count and ours, at most
    volatile uint32_t words[16];     // for the test's own use
};

struct shadow *shadow_create(void); // shared with children; NULL: no memory
void shadow_destroy(struct shadow *shadow);

// Makes the nodes; before the first append.
bool shadow_begin(struct shadow *shadow, struct segment *segment, const struct shadow_plan *plan);

// One append of a thread at the level that is free. Returns enum qut_stored.
int shadow_append(struct shadow *shadow, struct shadow_thread *of, struct segment *segment,
                  struct qut_trace_thread *thread, uintptr_t stack_low, uintptr_t stack_high);

// After a jump out of appends: what was under way may be there or not.
void shadow_doubt(struct shadow_thread *of);

// Compares all of the segment with what must be there. False: `fault` of the decoder says what is wrong.
bool shadow_check(struct shadow *shadow, struct decoder *decoder, struct decoded_totals *totals);

#endif
