// SPDX-License-Identifier: Apache-2.0
// How far a trace can be believed: which shares of its time have a whole stack and a name, what came late or was lost,
// whether that is enough, and what helps where it is not. Computed here only; whoever shows it prints these words.
#ifndef TRACER_EXPORT_QUALITY_H
#define TRACER_EXPORT_QUALITY_H

#include "base/json.h"
#include "tracer/export/export.h"

enum quality_aspect {
    QUALITY_WHOLE,    // of the time: stacks that reach the root
    QUALITY_NAMED,    // of the time: the innermost frame has a name
    QUALITY_KERNEL,   // of the time: in the kernel. Neither good nor bad
    QUALITY_RUN_TIME, // of the time: in code that was made at run time, by a virtual machine. Neither good nor bad
    QUALITY_GUESSED, // of the time: stacks with a frame that a guess led to, by frame pointers mostly. Neither good nor
                     // bad; there is none to be told of where there are no such stacks
    QUALITY_UNTICKED, // of the time: used by threads that no tick met. Told of where there are some
    QUALITY_LATE,     // of the ticks that were due: came together with another one
    QUALITY_LOST,     // of the samples and ticks: are not here
    QUALITY_COUNT,
};

// A file in which time is spent that has no names.
struct quality_unnamed {
    const char *path; // of the trace; "[memory]": no file
    const char *why;  // of the names
    uint64_t weight;
};
enum { QUALITY_UNNAMED_MAX = 3 };

// Where stacks end before their root.
struct quality_end {
    const char *why;      // of the trace: "[no module]"; of a stack without its innermost frames "[no room]"
    const char *function; // of the names: of the outermost frame that is known; "": there is none
    uint64_t weight;
};
enum { QUALITY_ENDS_MAX = 3 };

struct quality {
    enum measure measure; // what `sum` is of: processor time, where the trace has it
    uint64_t sum;
    uint64_t samples;
    uint64_t of[QUALITY_COUNT], all[QUALITY_COUNT];      // a share is of / all; all 0: nothing can be said
    struct quality_unnamed unnamed[QUALITY_UNNAMED_MAX]; // most weight first
    size_t unnamed_count;
    struct quality_end ends[QUALITY_ENDS_MAX]; // most weight first
    size_t end_count;
    uint64_t unnamed_run_time; // weight of code made at run time that has no name
    const char *machine;       // the virtual machine that is there: "java"; NULL: none is known
};

// 0, or -1 without memory. Lives no longer than the trace and the names.
int export_quality_make(struct quality *quality, const struct trace *trace, const struct names *names);

const char *export_quality_name(enum quality_aspect aspect); // "whole"
double export_quality_share(const struct quality *quality, enum quality_aspect aspect);
// Whether an aspect is good enough, or cannot be told; and whether all are, and there is something to be told of.
bool export_quality_is_good(const struct quality *quality, enum quality_aspect aspect);
bool export_quality_all_good(const struct quality *quality);

// One line: "good: 99.98 % of processor time with its whole stack, ...". Cut off where it is longer.
void export_quality_line(const struct quality *quality, char *text, size_t size);
// For each aspect that is not good what to do about it, and why it is as it is.
void export_quality_advise(const struct quality *quality, void (*say)(void *context, const char *text), void *context);
// A member "quality" of the object that is open.
void export_quality_json(const struct quality *quality, struct base_json *json);

#endif
