// SPDX-License-Identifier: Apache-2.0
// The part of a trace that is wanted: samples of one kind, of some processes and threads, of a stretch of time. It is a
// trace itself, so whatever shows a trace shows a part of one; and what each sample counts for was reckoned when all
// were there.
#ifndef TRACER_ANALYSIS_SELECTION_H
#define TRACER_ANALYSIS_SELECTION_H

#include "base/error.h"
#include "tracer/analysis/analysis.h"

// What samples are taken for. They are never mixed: a second on the processor is no second of waiting.
enum selection_kind {
    SELECTION_CPU,   // processor time: ticks of it, and what other samples are known to have used
    SELECTION_WALL,  // time: ticks of it
    SELECTION_ALLOC, // allocations
    SELECTION_LOCK,  // waits for locks and conditions
    SELECTION_IO,    // reads, writes, polls, sleeps and other calls that wait
    SELECTION_OTHER, // faults, modules that come and go, a program's own kinds
    SELECTION_KIND_COUNT,
    SELECTION_ALL = SELECTION_KIND_COUNT, // for what shows each kind by itself
    SELECTION_MAIN,                       // analysis_main_kind
};

const char *analysis_kind_name(enum selection_kind kind);              // "cpu"; of SELECTION_ALL "all"
bool analysis_kind_named(const char *name, enum selection_kind *kind); // of the first six. False: no such name
enum selection_kind analysis_kind_of(unsigned kind);                   // of enum qut_trace_kind, or an own one
// What the trace was taken for: cpu if it has ticks of it, else wall, else what it has most of.
enum selection_kind analysis_main_kind(const struct trace *trace);

struct selection_wanted {
    enum selection_kind kind;
    const uint32_t *pids; // pid_count 0: all
    size_t pid_count;
    const char *thread;     // a number, a name or a pattern of names (as of files); NULL: all
    uint64_t from_ns;       // since the trace's start
    uint64_t to_ns;         // UINT64_MAX: up to the end
    bool show_agent;        // the agent's own frames too
    bool show_interpreters; // their frames before the functions that they run, too
};

struct selection {
    struct trace
        trace; // only what is selected: threads, samples, marks, gaps. What it counts (hits, losses) is all of it
    const struct trace *whole;          // what it is a part of
    enum selection_kind kind;           // never SELECTION_MAIN
    enum measure measure;               // what the kind counts by itself; samples where the trace does not have that
    uint64_t (*weights)[MEASURE_COUNT]; // of trace.samples[i]
    uint64_t sums[MEASURE_COUNT];       // of all of them
    uint64_t start_ns, end_ns;          // of the time that is selected
};

// A run of samples, and an interval, counts for its part within the time. The measure WALL is the time up to the next
// selected sample: so it is the area of the selection's slices. SAMPLES are what the kind is about: ticks, allocations,
// waits that ended or are open. Returns 0, or -1 with *error filled: no memory.
// The trace stays the owner of what they share.
int analysis_selection_make(struct selection *to, const struct trace *trace, const struct selection_wanted *wanted,
                            struct base_error *error);
void analysis_selection_free(struct selection *selection);

// A line of text for each: the kinds that the trace has, with counts, its processes, its threads. For a selection that
// fits nothing.
void analysis_selection_say(const struct trace *trace, void (*say)(void *context, const char *text), void *context);

#endif
