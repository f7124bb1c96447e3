// SPDX-License-Identifier: Apache-2.0
// The frames of stacks that a script has taken, as the recording beside it has them. Allocates, blocks: files are read
// for names.
#ifndef TRACER_CLI_PROBE_PROBE_STACKS_H
#define TRACER_CLI_PROBE_PROBE_STACKS_H

#include <pthread.h>

#include "base/error.h"
#include "tracer/names/names.h"
#include "tracer/probe/script.h"
#include "tracer/probe/show.h"

struct probe_stacks_known {
    struct probe_stacks stacks; // who is asked
    struct trace trace;
    struct names *names;
    bool is_read;
    struct {
        BASE_VECTOR(struct probe_stack);
    } all; // by number
    struct {
        BASE_VECTOR(const char *);
    } frames; // of the one that was asked for last; malloc's
};

// The same while it is going on: what is not known is looked for in what the recording has so far, every so often.
struct probe_stacks_live {
    struct probe_stacks stacks; // who is asked
    const char *path;           // the caller's
    struct probe_stacks_known known;
    uint64_t next_ns;     // before that it is not looked for again
    pthread_mutex_t lock; // while it is looked for
    bool is_stopped;
};
void cli_probe_stacks_live_begin(struct probe_stacks_live *live, const char *path);
// It is not looked for any more: the recording is about to go. Waits for who does.
void cli_probe_stacks_live_stop(struct probe_stacks_live *live);
void cli_probe_stacks_live_end(struct probe_stacks_live *live);

// Whether a script takes any.
bool cli_probe_takes_stacks(const struct probe_script *script);
// Of the recording at `path`, which is over. -1: *error; nothing is known then. Free it in either case.
int cli_probe_stacks_read(struct probe_stacks_known *known, const char *path, struct base_error *error);
void cli_probe_stacks_free(struct probe_stacks_known *known);

#endif
