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

struct probing_options {
    const struct probe_script *script; // stays where it is, until the end
    FILE *out;                         // likewise; by this alone from now on
    bool json;                         // a document a line
};

// Runs the programs of `begin` first. NULL: *error.
struct probing *probing_begin(const struct probing_options *options, struct base_error *error);
// What traced processes are told; its programs are the caller's to fill in. Until the end.
struct traced_probe *probing_memory(struct probing *probing);

// No process is traced any more: what is left is read, programs of `end` run, all maps are shown. Frees it. Returns
// whether all could be written; *lost_records: of printf, that had no room. `stacks`: who knows stacks; NULL: nobody.
bool probing_end(struct probing *probing, struct probe_stacks *stacks, uint64_t *lost_records);

#endif
