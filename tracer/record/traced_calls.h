// SPDX-License-Identifier: Apache-2.0
// The processes of a recording whose calls are traced: each has a thread and a part of the file of its own.
#ifndef TRACER_RECORD_TRACED_CALLS_H
#define TRACER_RECORD_TRACED_CALLS_H

#include <limits.h>

#include "tracer/record/server.h"
#include "tracer/traced/process.h"

struct recorder;

struct traced_call_part {
    struct traced_call_part *next;
    struct traced_process *process; // NULL: it waits, or is released
    bool is_joined;                 // and kept: children of fork may still come
    struct traced_begin begin;
    bool has_copies; // as of the last look: processes that have told nothing have its code
    bool waits;      // until its agent is loaded: only one at a time may stop its threads
    pid_t pid;
    uint32_t inside_pid; // as it sees itself
    char path[PATH_MAX + 64];
};

// As server_events.calls; the context is the recorder.
void recorder_calls(void *context, const struct agent_channel_calls *calls, struct server_peer *peer, int memory_fd,
                    int client_fd);
// The agent is loaded.
void recorder_calls_begin(struct recorder *recorder);
void recorder_calls_reap(struct recorder *recorder);
// Tells all to stop, and waits until what was exchanged in the processes is put back; in children of fork, too, that
// have not told of themselves.
void recorder_calls_stop(struct recorder *recorder);
// Puts the parts behind what is in FILE.
void recorder_calls_append(struct recorder *recorder);

#endif
