// SPDX-License-Identifier: Apache-2.0
// What a trace says beyond its samples: for how long threads waited, for which lock, which thread held it and which let
// go of it; what allocates, what faults; and how sure a share is. Names are not needed: everything is told by node.
//
// Functions return 0, or -1 without memory; *to begins as zeroes, and is freed with the function beside it.
#ifndef TRACER_ANALYSIS_ANALYSIS_H
#define TRACER_ANALYSIS_ANALYSIS_H

#include "base/vector.h"
#include "tracer/trace/trace_data.h"

// ---- intervals: stretches of a thread's time that are told as such (a wait, a read, a call)

struct interval {
    uint64_t from_ns, to_ns;
    uint64_t blocked_ns; // of it, what no interval before has counted: sums of these count no time twice. 0: its thread
                         // was running (no QUT_TRACE_SAMPLE_OFF_CPU)
    uint64_t lock;       // address; 0: none
    uint32_t thread;     // index in trace->threads
    uint32_t node;       // the stack at its end, or of one that has none, at its beginning
    uint32_t begin_node; // TRACE_NONE: not known
    uint32_t owner_tid, waker_tid; // the lock's holder when the wait began, the thread that ended it; 0: not known
    uint32_t owner, waker;         // the same as indices in trace->threads; TRACE_NONE
    uint16_t kind;                 // enum qut_trace_kind
    bool is_open;                  // it did not end: to_ns is trace_open_until
    size_t sample;                 // index in trace->samples: its end, or its beginning where it is open
    size_t release;                // index in trace->samples: what ended it (the same EXTRA_FLOW); SIZE_MAX: not known
};

struct intervals {
    BASE_VECTOR(struct interval); // by thread, and in the order in which they ended
};
int analysis_intervals_make(struct intervals *to, const struct trace *trace);
void analysis_intervals_free(struct intervals *intervals);

// ---- blocked time by thread, kind and stack

struct blocked {
    uint32_t thread, node;
    uint16_t kind;
    uint64_t count, total_ns, longest_ns;
    uint64_t open; // of count, intervals that did not end
};
struct blocked_list {
    BASE_VECTOR(struct blocked); // largest total_ns first
};
int analysis_blocked_make(struct blocked_list *to, const struct trace *trace, const struct intervals *intervals);
void analysis_blocked_free(struct blocked_list *list);

// ---- waiters and holders

struct lock_wait {
    uint64_t lock;
    uint32_t process;              // index in trace->processes: an address means something in one process only
    uint32_t waiter, owner, waker; // indices in trace->threads; owner, waker: TRACE_NONE where not known
    uint32_t node;                 // the waiter's stack, of its longest wait
    uint32_t release_node;         // the waker's, of the same wait; TRACE_NONE: not known
    uint64_t count, total_ns, longest_ns;
};
struct lock_wait_list {
    BASE_VECTOR(struct lock_wait); // largest total_ns first
};
int analysis_lock_waits_make(struct lock_wait_list *to, const struct trace *trace, const struct intervals *intervals);
void analysis_lock_waits_free(struct lock_wait_list *list);

// ---- what a sample counts for

enum measure {
    MEASURE_SAMPLES,     // that were taken
    MEASURE_WALL,        // ns: the time until the next sample of its thread
    MEASURE_CPU,         // ns of processor time
    MEASURE_BYTES,       // allocated: an estimate, of what was sampled
    MEASURE_BLOCKED,     // ns off the processor
    MEASURE_ALLOCATIONS, // an estimate, likewise
    MEASURE_FAULTS,      // of pages
    MEASURE_COUNT,
};

// What a share's error goes by. Two clocks tell where processor time goes: ticks in user mode, and the kernel's own
// tick, which alone tells what the kernel does (QUT_TRACE_EXTRA_CPU_NS), and is coarser. Of samples that weigh
// differently, as many equal ones as they are worth: (sum of weights)^2 / sum of weights^2.
struct share_basis {
    uint64_t sum;      // of all weights
    uint64_t told_sum; // of those of the coarse clock
    double ticks;      // of the fine one
    double looks;      // of the coarse one, those included that met user mode
};
// By how much the share of `weight`, of which the coarse clock told `told`, may be off, with a chance of 95 % that it
// is no more; 0.03 is 3 %. 1 where there is nothing to go by.
//
//   b = told / sum, k = told_sum / sum, q = (weight - told) / (sum - told_sum)
//   variance = (b (1 - b) + q^2 k (1 - k) - 2 q b (1 - k)) / looks + (1 - k)^2 q (1 - q) / ticks
double analysis_share_error(const struct share_basis *basis, uint64_t weight, uint64_t told);
// How long the kernel's own tick is, where samples tell by its account of a thread's time; 0: not known.
uint64_t analysis_kernel_tick_ns(const struct trace *trace);

// Sums by node, of a selection.
struct hot_spot {
    uint32_t node;
    uint64_t self;      // samples that end in it
    uint64_t total;     // and in what it calls
    uint64_t self_told; // of self, by the coarse clock
};
struct hot_spots {
    struct hot_spot *items; // largest self first; nodes where self and total are 0 are left out
    size_t count;
    struct share_basis basis;
    uint64_t samples; // that counted for more than 0
    // What we took in the program's threads ourselves: handlers of ticks, and what ticks met in the agent. Of the
    // measures of time; in no sum, and in no item, unless they are `with_own`.
    uint64_t own;
    double own_share, own_error; // of all, with it
};
struct selection; // selection.h: one that leaves the agent in, since what is ours is told apart here
int analysis_hot_spots_make(struct hot_spots *to, const struct selection *selection, enum measure measure,
                            bool with_own);
void analysis_hot_spots_free(struct hot_spots *spots);

#endif
