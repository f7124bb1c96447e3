// SPDX-License-Identifier: Apache-2.0
// Which thread may be made to start another one for us: one that holds no lock that pthread_create takes, since it
// would wait for itself. Those are the allocator's, the loader's, and that of libc's list of threads.
#ifndef TRACER_INJECT_VICTIM_H
#define TRACER_INJECT_VICTIM_H

#include "tracer/inject/hijack.h"

struct victim {
    pid_t tid;
    size_t index; // in the target
    uint64_t since_ns;
};

struct victim_figures {
    unsigned looked_at, rounds;
    uint64_t stopped_ns;
};

// Looks until end_ns for a thread; stops one after another, each for itself. 0: it is stopped, and this thread traces
// it. -1: there was none.
int inject_victim_find(const struct inject_program *program, uint64_t end_ns, struct victim *victim,
                       struct victim_figures *figures, struct base_error *error);
// It goes on.
void inject_victim_let_go(const struct inject_program *program, const struct victim *victim,
                          struct victim_figures *figures);

#endif
