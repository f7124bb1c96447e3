// SPDX-License-Identifier: Apache-2.0
// Calls of traced functions (setting `X`): a thread of the agent's own makes the memory, tells the tracer, and does
// what that asks for, as formats/qut_agent.md has it.
#ifndef AGENT_TRACED_CALLS_H
#define AGENT_TRACED_CALLS_H

#include <stdbool.h>
#include <stdint.h>

#include "formats/qut_agent.h"

#pragma GCC visibility push(hidden)

// After hello; kept quiet by the caller. A process that begins by exec waits here until the tracer lets it go on;
// others until calls can be written, and a child of fork until the tracer has been told. What fails is told to the
// tracer, and leaves the process untraced.
void agent_traced_calls_begin(enum agent_channel_begin how);

// The thread is gone: nothing is asked for any more, what is traced stays traced. Returns its id; 0: there was none.
// Blocks for a moment. Kept quiet by the caller.
uint32_t agent_traced_calls_leave(void);

// In a child after fork, where there is no such thread.
void agent_traced_calls_after_fork(void);

// Before the agent is unloaded. False: a call is under way that returns to us, so that may not be.
bool agent_traced_calls_end(void);

#pragma GCC visibility pop

#endif
