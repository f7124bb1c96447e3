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
// By what it last looked at, and by asking where that is allowed: 5 s of patience, 60 s where it may not be asked.
bool agent_recorder_is_gone(void);

// ---- for children of fork (waiting.c)

// The recorder is told of this process, with its trace. 0 or -errno; not `wait`: what it answers is not waited for.
int agent_say_hello(enum agent_channel_begin how, int trigger_error, bool wait);
void agent_say_failed(int error); // what agent_say_hello gave, or what else failed
uint32_t agent_what_to_watch(void);

#pragma GCC visibility pop

#endif
