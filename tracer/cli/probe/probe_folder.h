// SPDX-License-Identifier: Apache-2.0
// The folder of the recording that a script runs beside, of which nothing is kept. It is locked as long as its tool
// lives: what one that was killed has left, the next one takes away.
#ifndef TRACER_CLI_PROBE_PROBE_FOLDER_H
#define TRACER_CLI_PROBE_PROBE_FOLDER_H

#include <limits.h>
#include <stdbool.h>

struct probe_folder {
    char directory[PATH_MAX / 2 + 32], path[PATH_MAX]; // path: of the recording
    int lock_fd;
};

// False: no folder can be made, and it was said where.
bool cli_probe_folder_make(struct probe_folder *folder);
void cli_probe_folder_remove(struct probe_folder *folder);

#endif
