// SPDX-License-Identifier: Apache-2.0
// Loads the agent into a process and takes it out again, in a thread of its own: meanwhile the loop answers what the
// agent asks.
#ifndef TRACER_RECORD_INJECTOR_H
#define TRACER_RECORD_INJECTOR_H

#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <sys/types.h>

#include "qutc/include/qutc/provide.h"
#include "tracer/inject/inject.h"
#include "tracer/record/record.h"

enum injector_state { INJECTOR_NONE, INJECTOR_LOADS, INJECTOR_RUNS, INJECTOR_DONE };

struct injector {
    pid_t pid;
    struct inject_options options;
    pthread_t thread;
    pid_t *children; // that were forked, and live: theirs is taken out, too. malloc's
    size_t child_count;
    int remove_fd;  // eventfd: take it out
    int changed_fd; // eventfd, the caller's: told at each change of `state`
    _Atomic int state;
    // With INJECTOR_DONE:
    bool was_loaded;               // false: `error` says why
    unsigned children_left;        // with an agent that could not be taken out
    struct base_error child_error; // of the first
    struct base_error error;       // .reason 0: none
    struct inject_figures figures;
};

// *provide, and what `options` and `settings` point to, stay where they are.
struct inject_options record_injector_options(const struct record_options *options, const char *settings,
                                              struct qutc_provide_options *provide);
// *options, and what it points to, stay where they are.
int record_injector_begin(struct injector *injector, pid_t pid, const struct inject_options *options, int changed_fd,
                          struct base_error *error);
// Does not wait. `children`: malloc's, or NULL, and no longer the caller's.
void record_injector_remove(struct injector *injector, pid_t *children, size_t child_count);
void record_injector_join(struct injector *injector); // with INJECTOR_DONE

#endif
