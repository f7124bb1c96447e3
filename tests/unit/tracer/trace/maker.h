// SPDX-License-Identifier: Apache-2.0
// Segments made by the product's own writer, and beside them what was put in: what a reader must give back.
#ifndef TESTS_UNIT_TRACER_TRACE_MAKER_H
#define TESTS_UNIT_TRACER_TRACE_MAKER_H

#include "libqut/segment/segment.h"
#include "tracer/trace/trace_data.h"

enum { MAKER_THREADS = 3, MAKER_STACKS = 40, MAKER_DEPTH_MAX = 12 };

struct made_hit {
    uint64_t time_ns, cpu_ns;
    uint32_t stack; // index in stacks
    uint16_t kind, flags;
    uint64_t size_extra; // 0: none
    uint64_t faults;     // metric 0
};

struct made_mark {
    uint64_t time_ns, id;
    uint32_t kind;
};

struct made_thread {
    struct qut_trace_thread *slot;
    struct made_hit *hits[QUT_TRACE_LEVELS]; // those that were stored or merged
    size_t hit_count[QUT_TRACE_LEVELS], hit_room[QUT_TRACE_LEVELS];
    struct made_mark *marks;
    size_t mark_count, mark_room;
    uint64_t throttled, lost, allocated;
};

struct maker {
    struct segment segment;
    uint64_t random, now_ns;
    uint32_t stacks[MAKER_STACKS]; // node ids
    uint64_t pcs[MAKER_STACKS][MAKER_DEPTH_MAX];
    unsigned depths[MAKER_STACKS];
    struct made_thread threads[MAKER_THREADS];
    uint32_t mark_name;
};

struct maker_options {
    uint32_t mode;
    uint64_t segment_bytes;
    uint64_t seed;
    const char *path;
    bool no_extras; // as a profiler that only ticks
    uint32_t pid;
};

void maker_begin(struct maker *maker, const struct maker_options *options);
// So many appends (or skips, or marks) on random threads and levels.
void maker_run(struct maker *maker, const struct maker_options *options, size_t steps);
void maker_close(struct maker *maker); // closes the segment
void maker_free(struct maker *maker);

uint64_t maker_random(uint64_t *state);

// Asserts that a trace has all of it, or (with OVERWRITE) the newest of it.
void maker_compare(const struct maker *maker, const struct trace *trace, bool all);

#endif
