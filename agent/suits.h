// SPDX-License-Identifier: Apache-2.0
// Processes that the agent is loaded into and must leave alone, or treat with care.
#ifndef AGENT_SUITS_H
#define AGENT_SUITS_H

#include "formats/qut_agent.h"

#pragma GCC visibility push(hidden)

// Why not; AGENT_LEFT_NOT: it may begin here. The C library is another one than that we were built for, or the program
// wants to be its only thread.
enum agent_left agent_fits(int argument_count, char *const arguments[]);

// A signal for the ticks: one that a debugger passes on without stopping, where one is attached; one that the program
// does not handle, where we are injected; else 0: libqut chooses.
int agent_signal_that_fits(enum agent_channel_begin how);

#pragma GCC visibility pop

#endif
