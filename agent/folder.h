// SPDX-License-Identifier: Apache-2.0
// Without a recorder: samples go into a segment in a folder, from which `qut monitor` takes them, now or later, or
// never. Its file is made when there is something to store, so that commands of a moment leave none.
#ifndef AGENT_FOLDER_H
#define AGENT_FOLDER_H

#include <stdbool.h>

#include "agent/tell.h"
#include "formats/qut_agent.h"

#pragma GCC visibility push(hidden)

// Whether the settings name a folder: then there is no recorder to tell anything.
bool agent_folder_is_meant(void);
// Whether files can be made there: 0 or -errno.
int agent_folder_reach(void);
// The path of a new segment. False: it does not fit.
bool agent_folder_path(char *path, size_t size);
// Looks what the monitor has told: as libqut's thread does now and then (host_registry_call).
int agent_folder_look(void);
// A process that is left alone: a file without content, whose name says why. Kept quiet by the caller.
void agent_folder_left(enum agent_left why, enum agent_tell_left who, int error);

#pragma GCC visibility pop

#endif
