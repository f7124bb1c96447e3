// SPDX-License-Identifier: Apache-2.0
// Subjects of tests, and recordings of them. What goes wrong fails the test.
#ifndef TESTS_UNIT_TRACER_ATTACH_RECORDING_H
#define TESTS_UNIT_TRACER_ATTACH_RECORDING_H

#include <sys/types.h>

#include "tracer/attach/attach.h"
#include "tracer/trace/trace_data.h"

// A process of subject.c or census.c.
struct subject {
    pid_t pid;
    int in, out;
    unsigned long three, one, hold; // where functions begin
};

void begin(struct subject *subject, const char *path, const char *mode, const char *argument); // until it is ready
// Ends it. Returns its status; `text`, if not NULL, is what it said.
int finish(struct subject *subject, char *text, size_t size);

char *read_file(pid_t pid, const char *name); // of /proc/PID; to be freed
long status_number(pid_t pid, const char *field);
char state_of(pid_t pid);

struct recording {
    struct attach_options options;
    struct attach_result result;
    struct attach_error error;
    int status;
    struct trace trace;
};

extern double recording_seconds; // how long each takes

void prepare(struct recording *recording, pid_t pid, unsigned hz, bool wall);
// After attach_record: reads the trace, and checks that it is whole and that all counts add up.
void read_back(struct recording *recording);
void record(struct recording *recording); // both
void done(struct recording *recording);

#endif
