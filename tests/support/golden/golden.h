// SPDX-License-Identifier: Apache-2.0
// Traces that tests know by heart.
#ifndef TESTS_SUPPORT_GOLDEN_GOLDEN_H
#define TESTS_SUPPORT_GOLDEN_GOLDEN_H

#include "tracer/trace/trace_data.h"

enum {
    GOLDEN_THREADS = 4, // the last one has no samples
    GOLDEN_PID = 4242,
    GOLDEN_DEEP = 200, // frames of the deepest stack
};
#define GOLDEN_START_NS     1000000000000u // what is below happens so much later
#define GOLDEN_LENGTH_NS    1000000000u
#define GOLDEN_OWN_KIND     (QUT_TRACE_OWN_KIND_FIRST + 2)
#define GOLDEN_FLOW         0xf10full
#define GOLDEN_LOCK         0x7ffc0de0ull
#define GOLDEN_HOSTILE      "a\"b<script>alert(1)</script>;c\nd\\e\xff'&"
#define GOLDEN_LOCK_WAIT_NS 30000000u
#define GOLDEN_TOLD_NS      (3u << 20)

// Four threads, a few dozen samples of each class of frame and of each kind that writers treat differently: deep and
// recursive stacks, stacks that end early, merged runs, marks that cut equal stacks, metrics, a lock that is waited
// for and given, hostile names. Losses and gaps are counted, it balances, and it is complete. Not for trace_free.
void golden_trace(struct trace *trace);

// The sample of GOLDEN_OWN_KIND tells how much processor time it stands for, in whole units, and nothing else. In files
// alone: exports of the golden trace as it is are held by many tests.
void golden_tell(struct trace *trace);

// Makes it a damaged one: a chunk could not be read.
void golden_damage(struct trace *trace);

// `samples` records of about 1.3 samples each, equally many in each thread, of stacks up to `depth` frames deep that
// wander. The same for the same numbers.
void golden_large(struct trace *trace, size_t samples, size_t threads, size_t depth);

void golden_free(struct trace *trace);

#endif
