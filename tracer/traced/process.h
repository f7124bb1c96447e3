// SPDX-License-Identifier: Apache-2.0
// One process whose calls are traced, from the agent's CALLS to its end or ours: a thread of its own, which is the one
// that the kernel knows as the process's tracer. The recorder begins it, tells it to stop, joins it.
#ifndef TRACER_TRACED_PROCESS_H
#define TRACER_TRACED_PROCESS_H

#include <stdbool.h>
#include <sys/types.h>

#include "base/error.h"
#include "formats/qut_agent.h"
#include "tracer/traced/traced.h"

struct traced_process;

struct traced_begin {
    pid_t pid;
    int process_fd;                // of pidfd_open; -1: there is none
    int channel_fd;                // the agent's connection
    int memory_fd;                 // what came with CALLS
    int file_fd;                   // for the part of calls
    int finished_fd;               // stays the caller's: told when all is over
    bool is_attached;              // it ran before: calls may be running
    struct traced_process *parent; // that it was forked from, which is not released yet; NULL: it began by exec
    const char *cache_directory;   // of tables; NULL: none
    const char *token;
    const struct traced_options *options; // stays where it is
};

// Takes the descriptors over, also where it fails: NULL, *error.
struct traced_process *traced_begin(const struct traced_begin *begin, struct base_error *error);
// The recording is over: all is put back. Does not wait.
void traced_stop(struct traced_process *process);
// The process has become another program: nothing of it is there any more.
void traced_replaced(struct traced_process *process);
bool traced_is_finished(const struct traced_process *process);
// Waits, adds to *result. Returns whether the file is whole. What is known of its code stays for its children.
bool traced_join(struct traced_process *process, struct traced_result *result);
// It is joined, and no child comes that is not there. Frees it with the last of these.
void traced_release(struct traced_process *process);

// Of a process that is joined: whether another one is a child of fork, its or a child's. By its memory alone.
bool traced_is_copy(const struct traced_process *parent, pid_t pid);
// Puts such a one's code back, where it has told nothing. *result has what became of it.
void traced_sweep(const struct traced_process *parent, pid_t pid, struct traced_result *result);

#endif
