// SPDX-License-Identifier: Apache-2.0
#ifndef TRACER_PROBING_INSIDE_H
#define TRACER_PROBING_INSIDE_H

#include <stdatomic.h>

#include "bytecode/maps.h"
#include "formats/qut_probe_live.h"
#include "tracer/probe/show.h"
#include "tracer/probing/probing.h"
#include "tracer/probing/track.h"

// Stacks are shown by their numbers as long as their frames are not known, at the latest until the recording is over.
// What was shown so is kept, and told then.
struct probing_stacks {
    struct probe_stacks stacks; // who notes them, and at the end asks
    BASE_VECTOR(uint64_t);      // ascending
    uint64_t untold, unknown;   // of struct probing_result
    struct probe_stacks *known; // who is asked; NULL: nobody
};

struct probing {
    struct probing_options options;
    FILE *running; // what the script shows before the end
    struct traced_probe memory;
    struct qut_probe_image image; // the script's
    struct qut_probe_live *live;  // shared: what others write there is not believed
    struct qut_probe_live laid_out;
    struct bytecode_maps maps;
    uint64_t *slots;
    uint64_t tail, stuck_ns; // since when the slot at tail is not written; 0: it is
    uint64_t skipped;        // that never were
    uint64_t *due_ns;        // by place, of timers
    pthread_t thread;
    _Atomic bool is_over;
    struct probing_stacks noted;
    struct track track;
    bool is_over_told; // that it is over its budget
    bool has_failed;   // something could not be shown
};

// Runs a program of the tool's. (outside.c)
void probing_run(struct probing *probing, uint32_t program);
void probing_run_all(struct probing *probing, enum qut_probe_kind kind);
void probing_show_map(struct probing *probing, uint32_t map);
void probing_show_all(struct probing *probing); // at the end
// (stacks.c)
void probing_stacks_begin(struct probing *probing);
void probing_stacks_tell(struct probing *probing,
                         struct probe_stacks *known); // and shows all by their frames from now on
// Shows what records have come. (records.c)
void probing_drain(struct probing *probing);
void probing_show_record(struct probing *probing, uint32_t record, const uint64_t *words);

#endif
