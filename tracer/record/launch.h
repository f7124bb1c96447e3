// SPDX-License-Identifier: Apache-2.0
// Starts the command with the agent before all else; it inherits what we have inherited, and nothing of ours.
#ifndef TRACER_RECORD_LAUNCH_H
#define TRACER_RECORD_LAUNCH_H

#include <signal.h>
#include <stdbool.h>
#include <sys/types.h>

#include "base/error.h"

struct launch {
    const char *path; // of the file
    char *const *arguments;
    const char *preload, *settings; // for LD_PRELOAD and AGENT_VARIABLE; NULL: they stay as they are
    const sigset_t *mask;           // of signals, as it was before ours
};

struct launched {
    pid_t pid;
    int process_fd; // of pidfd_open; -1: denied, as by filters of containers: then SIGCHLD tells of its end
};

// 0; or PROGRAM_NOT_FOUND, PROGRAM_NOT_EXECUTABLE or another status for the shell; -1: there could be no child. *error
// says why.
int record_launch(const struct launch *launch, struct launched *launched, struct base_error *error);

// This process becomes the command, without an agent. Returns where it cannot, as record_launch does.
int record_launch_instead(const struct launch *launch, struct base_error *error);

// A descriptor that tells of SIGCHLD (with_children) and of the signals that end a recording, which are blocked from
// then on; `mask_before` is the mask before. Those that were ignored (nohup, a background job) stay so. -1: errno says
// why.
int record_launch_take_signals(bool with_children, sigset_t *mask_before);

// Signals that this program ignores, and descriptors that it may have, for its own sake (some for each process that is
// recorded): the command has both as they were.
void record_launch_ignore_signals(void);
void record_launch_raise_limit(void);

#endif
