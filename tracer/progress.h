// SPDX-License-Identifier: Apache-2.0
// How far long work is: one line on a terminal, nothing where standard error is none.
#ifndef TRACER_PROGRESS_H
#define TRACER_PROGRESS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct progress {
    const char *what; // "names"
    bool is_shown, is_drawn;
    uint64_t next_ns; // not drawn again before
};

void progress_begin(struct progress *progress, const char *what, bool quiet);
// A struct progress as context: fits names_options.progress and export_options.progress.
void progress_step(void *context, size_t done, size_t all);
// The line is empty again: before anything else is written there.
void progress_end(struct progress *progress);

#endif
