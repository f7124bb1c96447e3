// SPDX-License-Identifier: Apache-2.0
// A child of fork waits with its trace, its thread and its hello until something is to be stored: its first tick, or
// what it can be recorded by no more behind. Most children end, or become another program, before that. Where the trace
// is a file in a folder every process does so.
#ifndef AGENT_WAITING_H
#define AGENT_WAITING_H

#include <stdbool.h>
#include <stdint.h>

#pragma GCC visibility push(hidden)

extern uint32_t agent_waits; // this process does (or the one whose memory a child of vfork has)

// What stands in the settings, and what became of the ticks, lets children wait. Once both are known.
void agent_waiting_prepare(bool is_injected);

// The same of this process, which has planned its trace (feed_open_later): whether it waits; else the trace is open, or
// -errno. Kept quiet by the caller.
int agent_waiting_first(bool *waits);

// In a child after fork, kept quiet: its ticks begin. False: it is not to wait, and has a trace, or may not be
// recorded.
bool agent_waiting_begin(void);

void agent_waiting_over(void);
// Before what a child could not begin behind, or would begin otherwise behind: threads, users, namespaces, filters.
// Where it waits, it begins. Not in handlers.
static inline void agent_wait_no_more(void)
{
    if (__builtin_expect(__atomic_load_n(&agent_waits, __ATOMIC_RELAXED) != 0, 0))
        agent_waiting_over();
}

// This process ends. Whether it had waited until now: then the recorder is told so, and of nothing else. Signal-safe.
bool agent_waiting_ends(void);

#pragma GCC visibility pop

#endif
