// SPDX-License-Identifier: Apache-2.0
// A subject that runs, and what can be seen of it from outside.
#ifndef TESTS_UNIT_TRACER_INJECT_PROCESS_H
#define TESTS_UNIT_TRACER_INJECT_PROCESS_H

#include <sys/types.h>

#include "tests/support/process_look.h"
#include "tests/unit/tracer/inject/subject.h"

struct process {
    pid_t pid;
    struct subject_state *state;
};

// All fail the test where they cannot.
struct process process_start(const char *program, const char *mode, const char *file);
void process_goes_on(const struct process *process); // makes some more calls
int process_end(struct process *process);            // told to; its exit status

#endif
