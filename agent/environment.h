// SPDX-License-Identifier: Apache-2.0
#ifndef AGENT_ENVIRONMENT_H
#define AGENT_ENVIRONMENT_H

#pragma GCC visibility push(hidden)

// Takes what the recorder put into the environment out again: in place, since main's third argument and /proc show the
// same bytes. Before any other reads it.
void agent_environment_forget(void);

#pragma GCC visibility pop

#endif
