// SPDX-License-Identifier: Apache-2.0
// The descendants of a process that is recorded from outside: they are not in the recording, and may be where the work
// is.
#ifndef TRACER_CLI_RECORD_CHILDREN_H
#define TRACER_CLI_RECORD_CHILDREN_H

#include <stdint.h>
#include <sys/types.h>

#include "base/vector.h"

struct record_relative {
    pid_t pid, parent;
    uint64_t cpu_ns;      // in steps of the kernel's clock for users
    uint64_t begin_ticks; // of that clock: tells it from a later one of the same number
    bool is_descendant;
};

struct record_children {
    BASE_VECTOR(struct record_relative); // all processes, by pid
};

// As it is now. Without memory, or /proc, it is empty.
void cli_record_children_read(struct record_children *children, pid_t pid);
void cli_record_children_free(struct record_children *children);
// What they did since, where that is more than the process itself did; and where it did nothing, that.
void cli_record_children_say(const struct record_children *before, pid_t pid, bool has_samples);

#endif
