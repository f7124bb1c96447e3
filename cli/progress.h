// SPDX-License-Identifier: Apache-2.0
// How far long work is: one line on a terminal, nothing where standard error is none.
#ifndef CLI_PROGRESS_H
#define CLI_PROGRESS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct progress {
    const char *what; // "names"
    bool is_shown, is_drawn;
    uint64_t next_ns; // not drawn again before
};

void cli_progress_begin(struct progress *progress, const char *what, bool quiet);
// A struct progress as context: fits names_options.progress and export_options.progress.
void cli_progress_step(void *context, size_t done, size_t all);
// The same, with the name of what comes next. Drawn each time: such steps are files.
void cli_progress_step_to(struct progress *progress, size_t done, size_t all, const char *name);
// The line is empty again: before anything else is written there.
void cli_progress_end(struct progress *progress);

#endif
