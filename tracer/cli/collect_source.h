// SPDX-License-Identifier: Apache-2.0
// Where a segment is, and whether the process that writes it lives.
#ifndef TRACER_CLI_COLLECT_SOURCE_H
#define TRACER_CLI_COLLECT_SOURCE_H

#include <stdbool.h>

#include "base/error.h"

struct collect_source {
    int segment_fd;
    int process_fd; // of pidfd_open; -1: it is gone, or cannot be told (`is_gone`)
    bool is_gone;
};

// The segment that a process has in memory without a name.
int cli_collect_source_of_process(struct collect_source *source, int pid, bool writable, struct base_error *error);
int cli_collect_source_of_file(struct collect_source *source, const char *path, bool writable,
                               struct base_error *error);
// Takes the descriptor over.
int cli_collect_source_of_fd(struct collect_source *source, int fd, struct base_error *error);
void cli_collect_source_close(struct collect_source *source);

#endif
