// SPDX-License-Identifier: Apache-2.0
// Tables of a command and of the libraries that it is linked with, made before it starts: so its first samples have
// whole stacks, and it does not wait. What it loads later is asked for by the agent.
#ifndef TRACER_RECORD_TABLES_AHEAD_H
#define TRACER_RECORD_TABLES_AHEAD_H

#include <stdbool.h>
#include <stddef.h>

#include "tracer/record/command_file.h"

struct ahead {
    const char *cache_directory;
    const char *agent_path;
    void (*progress)(void *context, size_t done, size_t all);
    void *progress_context;
    bool (*is_interrupted)(void *context); // asked after each file
};

// Whatever fails here is done later. Returns false where it was interrupted.
bool record_ahead_of(const struct ahead *ahead, const struct program *program);

// The command's file, and the libraries that its loader would load.
enum { RECORD_PATHS_MAX = 512 };
struct record_paths {
    char *items[RECORD_PATHS_MAX]; // malloc's
    size_t count;
};
void record_program_paths(const struct program *program, struct record_paths *paths);
void record_paths_free(struct record_paths *paths);

#endif
