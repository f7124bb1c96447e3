// SPDX-License-Identifier: Apache-2.0
// The agent stands between a program and its libc. Its own frames are not the program's:
//
//   main, poll (agent), blocked_leave (agent)      -> main, poll
//   main, dlopen (agent), dlopen (libc), init      -> main, dlopen (libc), init
//
// Where a stack ends in the agent, the outermost of its frames there is the function that the program called; in front
// of other frames they say nothing.
#ifndef TRACER_ANALYSIS_AGENT_FRAMES_H
#define TRACER_ANALYSIS_AGENT_FRAMES_H

#include "tracer/trace/trace_data.h"

// Whether the node's code is the agent's.
bool analysis_is_agent(const struct trace *trace, uint32_t node);

// Of a stack that ends in the agent, the function that the program called; of any other, the node itself.
uint32_t analysis_called_node(const struct trace *trace, uint32_t node);

// Hangs nodes of `nodes`, a copy of trace->nodes, from others, so that the agent's frames stand at the ends of stacks
// only (and below what the kernel did for them). Indices stay what they are.
void analysis_agent_leave_out(const struct trace *trace, struct trace_node *nodes);

// Whether a tick met what sampling itself does in the program's threads: the agent, the kernel for it, handlers of
// ticks.
bool analysis_is_own(const struct trace *trace, const struct trace_sample *sample);
// Of a tick: what its innermost node says of it.
bool analysis_is_own_place(const struct trace *trace, uint32_t at);

#endif
