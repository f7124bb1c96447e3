// SPDX-License-Identifier: Apache-2.0
// Stacks that probes ask for (setting `X`): who has called a function, as a number. The frames go into the process's
// trace, once for each number.
#ifndef AGENT_PROBE_STACKS_H
#define AGENT_PROBE_STACKS_H

#pragma GCC visibility push(hidden)

// From now on; a trace is open.
void agent_probe_stacks_begin(void);

#pragma GCC visibility pop

#endif
