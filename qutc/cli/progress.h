// SPDX-License-Identifier: Apache-2.0
// One line on the terminal, rewritten while a batch runs. Nothing where standard error is no terminal.
#ifndef QUTC_CLI_PROGRESS_H
#define QUTC_CLI_PROGRESS_H

#include <stdbool.h>
#include <stddef.h>

struct cli_progress {
    const char *verb;
    size_t total;
    bool is_shown; // at all
    bool is_drawn; // now
};

void cli_progress_init(struct cli_progress *progress, const char *verb, size_t total, bool quiet);
void cli_progress_step(struct cli_progress *progress, size_t done, const char *name);
// Before anything else is printed, and at the end.
void cli_progress_clear(struct cli_progress *progress);

#endif
