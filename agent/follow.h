// SPDX-License-Identifier: Apache-2.0
// Programs that the agent cannot come along to, seen before exec begins them.
#ifndef AGENT_FOLLOW_H
#define AGENT_FOLLOW_H

#include <stdbool.h>
#include <stddef.h>

#include "formats/qut_agent.h"

#pragma GCC visibility push(hidden)

// Why what exec begins will be left alone; AGENT_LEFT_NOT: it will not, or it cannot be said. The first three are
// execveat's; of agent_follow_search `file` may have no slash, too. Kept quiet by the caller.
enum agent_left agent_follow_look(int directory, const char *path, int flags, char *const environment[]);
enum agent_left agent_follow_search(const char *file, char *const environment[]);

// Whether this process, as which a program would be loaded now, may not read the file of ours that the environment
// names: another user than the recorder's, another root directory, or a recorder that is gone and took it away.
bool agent_follow_is_unreadable(char *const environment[]);

// A loader that cannot load us (of another machine; or we are unreadable) would say so where the program's user sees
// it: the environment without us, in `room`, which has agent_follow_room bytes. 0: it stays as it is.
size_t agent_follow_room(enum agent_left left, char *const environment[]);
char *const *agent_follow_environment(char **room, char *const environment[]);

#pragma GCC visibility pop

#endif
