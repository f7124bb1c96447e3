// SPDX-License-Identifier: Apache-2.0
// Beginning and end of what the agent does in a process, and in each of its threads.
#ifndef AGENT_START_H
#define AGENT_START_H

#include "agent/inside.h"
#include "formats/qut_agent.h"

#pragma GCC visibility push(hidden)

// 0, or -errno: nothing is on, and all is as before. `text`: of formats/qut_agent.h.
int agent_begin(const char *text, enum agent_channel_begin how);
void agent_end(void); // also where nothing is on

#pragma GCC visibility pop

#endif
