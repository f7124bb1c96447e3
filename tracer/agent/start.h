// SPDX-License-Identifier: Apache-2.0
// Beginning and end of what the agent does in a process, and in each of its threads.
#ifndef TRACER_AGENT_START_H
#define TRACER_AGENT_START_H

#include "tracer/agent/agent.h"
#include "tracer/agent/channel.h"

#pragma GCC visibility push(hidden)

// 0, or -errno: nothing is on, and all is as before. `text`: of settings.h.
int agent_begin(const char *text, enum agent_channel_begin how);
void agent_end(void); // also where nothing is on

// Whether this very process is the one that is recorded: not so in children of vfork, which share its memory, nor in
// those of clone. One system call.
bool agent_is_on_here(void);
// Whether what this process begins is recorded as well: true in children of vfork, too.
bool agent_follows(void);
// The signal of our ticks: what the program does with it is kept from the kernel. 0: there is none.
extern _Atomic int agent_signal;

// The calling thread has ticks from now on, and again; and has none any more. Kept quiet by the caller.
void agent_ticks_begin(void);
void agent_ticks_end(void);

// A sample that a hook takes of memory that came or went. The hook is its innermost frame; `frames` are between.
void agent_take_memory(uint32_t kind, const void *address, size_t size, uint32_t frames);

// Between these two the program has no part in what the calling thread does: no handler of it runs, no cancellation
// acts, hooks go straight to libc; errno is kept. Nests.
struct agent_quiet {
    uint64_t blocked; // signals, before
    int saved_errno, cancel_state;
    uintptr_t inside;
};
void agent_quiet_begin(struct agent_quiet *quiet);
void agent_quiet_end(const struct agent_quiet *quiet);
static inline bool agent_is_quiet(void)
{
    return agent_thread.inside == UINTPTR_MAX; // further out than any frame: nobody thinks that it was left
}

#pragma GCC visibility pop

#endif
