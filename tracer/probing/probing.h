// SPDX-License-Identifier: Apache-2.0
// A script that runs: the memory that the tool shares with the programs under its probes, and the tool's part of it, in
// a thread of its own: programs of timers, records of printf, maps. Allocates; blocks as the stream does.
#ifndef TRACER_PROBING_PROBING_H
#define TRACER_PROBING_PROBING_H

#include <stdio.h>

#include "base/error.h"
#include "tracer/probe/script.h"
#include "tracer/traced/probe.h"

struct probing;
struct probe_stacks;

enum probing_form {
    PROBING_TEXT,
    PROBING_JSON,       // a document a line
    PROBING_PROMETHEUS, // one document, at the end
};

// Probes of a process took more processor time than they may: no program runs in any process from then on.
struct probing_over {
    uint32_t pid;          // as it sees itself
    double percent, cpu_s; // of so much processor time
};

struct probing_options {
    const struct probe_script *script; // stays where it is, until the end
    FILE *out;                         // likewise; by this alone from now on
    FILE *said; // likewise, of PROBING_PROMETHEUS: what the script prints before the end is text, and goes there
    enum probing_form form;
    struct probe_stacks *live; // knows some stacks before the end; asked by a thread of ours. NULL: nobody
    uint32_t budget_permille;  // of each process's processor time; 0: none
    bool interprets;           // no process makes machine code of its programs
    bool tells_calls;          // of probed functions calls are events as well
    void (*say_over)(const struct probing_over *over); // once, by a thread of ours; with a budget only
    uint64_t every_ns;                                 // values of maps for a trace, so often; 0: nobody wants them
};

// Runs the programs of `begin` first. NULL: *error.
struct probing *probing_begin(const struct probing_options *options, struct base_error *error);
// What traced processes are told; its programs are the caller's to fill in. Until the end.
struct traced_probe *probing_memory(struct probing *probing);

// There is a file for values now (every_ns): maps as counters, lines of printf as instants, as a trace of this process.
// The descriptor, of an empty file, is the script's from now on. -1: *error.
int probing_collect(struct probing *probing, int file_fd, struct base_error *error);

struct probing_track_result {
    bool is_made;                     // there is a file; `failure`: whether all could be written
    uint64_t counters, lines;         // that are in it
    uint64_t other_keys;              // that have no counter: they never were among the greatest
    uint64_t lost_values, lost_lines; // that had no room
    bool is_short;                    // of memory: not all is there
    struct base_error failure;        // of writing the file
};

struct probing_result {
    struct probing_track_result track;
    bool is_over;            // its budget
    bool is_whole;           // all could be written
    uint64_t interpreted;    // processes that could not make machine code of programs, and have interpreted them
    int interpreted_error;   // why, as an errno
    uint64_t lost_records;   // of printf, that had no room
    uint64_t unlisted_calls; // of which it is not known whether they were left
    uint64_t untold_stacks;  // times that one was shown by its number and could not be kept, to be told at the end
    uint64_t unknown_stacks; // times that one was shown by its number at the end, since nobody has its frames
};
// No process is traced any more: what is left is read, programs of `end` run, all maps are shown. Frees it. `stacks`:
// who knows stacks; NULL: nobody.
struct probing_result probing_end(struct probing *probing, struct probe_stacks *stacks);

#endif
