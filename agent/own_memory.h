// SPDX-License-Identifier: Apache-2.0
// Memory for libqut and the agent, away from the program's: malloc, calloc, realloc, free and strdup of what is linked
// into the agent end up here (-Wl,--wrap). So what we need never moves the program's heap, and all of it goes when the
// agent is unloaded.
#ifndef AGENT_OWN_MEMORY_H
#define AGENT_OWN_MEMORY_H

#pragma GCC visibility push(hidden)

// Gives everything back. None of it is in use.
void agent_memory_end(void);

#pragma GCC visibility pop

#endif
