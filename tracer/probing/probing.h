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
    void (*say_over)(const struct probing_over *over); // once, by a thread of ours; with a budget only
};

// Runs the programs of `begin` first. NULL: *error.
struct probing *probing_begin(const struct probing_options *options, struct base_error *error);
// What traced processes are told; its programs are the caller's to fill in. Until the end.
struct traced_probe *probing_memory(struct probing *probing);

struct probing_result {
    bool is_over;            // its budget
    bool is_whole;           // all could be written
    uint64_t lost_records;   // of printf, that had no room
    uint64_t untold_stacks;  // times that one was shown by its number and could not be kept, to be told at the end
    uint64_t unknown_stacks; // times that one was shown by its number at the end, since nobody has its frames
};
// No process is traced any more: what is left is read, programs of `end` run, all maps are shown. Frees it. `stacks`:
// who knows stacks; NULL: nobody.
struct probing_result probing_end(struct probing *probing, struct probe_stacks *stacks);

#endif
