// SPDX-License-Identifier: Apache-2.0
// What a tool that was killed has left in processes: functions that are exchanged, and an agent that was loaded. All of
// it is put back and taken out: by a watcher, as soon as the tool is gone, and else by the next tool that comes.
// [Blocks, allocates. Any thread; of several that come to one process at once, also of other tools, one works.]
#ifndef TRACER_RESCUE_RESCUE_H
#define TRACER_RESCUE_RESCUE_H

#include <stdbool.h>
#include <sys/types.h>

#include "base/error.h"
#include "tracer/inject/inject.h"

struct rescue_figures {
    unsigned put_back, returns_put_back;
    bool is_agent_out;
};

// Whatever is there of tools that are gone. `only`: of that one alone; NULL: of any. `how`: as to load an agent there.
// 0, also where there is nothing; -1: *error, and what could not be put back runs on as it did.
int rescue_process(pid_t pid, const struct inject_owner *only, const struct inject_options *how,
                   struct rescue_figures *figures, struct base_error *error);

// Starts a process that waits for the end of this one, and does so then in all that this one has touched. It has
// nothing of the terminal, and no signal that is sent to us or to our group reaches it. Returns a descriptor; -1: there
// is none, and the next tool has to do it. Before there are threads of ours.
int rescue_watch(const struct inject_options *how);
// Nothing is left anywhere: it goes.
void rescue_watch_end(int fd);

#endif
