// SPDX-License-Identifier: Apache-2.0
#ifndef TRACER_RECORD_PROGRAM_PATHS_H
#define TRACER_RECORD_PROGRAM_PATHS_H

#include <stddef.h>

#include "tracer/record/command_file.h"

// The command's file, and the libraries that its loader would load.
enum { RECORD_PATHS_MAX = 512 };
struct record_paths {
    char *items[RECORD_PATHS_MAX]; // malloc's
    size_t count;
};
void record_program_paths(const struct program *program, struct record_paths *paths);
void record_paths_free(struct record_paths *paths);

#endif
