// SPDX-License-Identifier: Apache-2.0
#include "qutc/cli/progress.h"

#include <stdio.h>
#include <unistd.h>

#include "qutc/cli/cli.h"

enum { NAME_COLUMNS = 48 };

void cli_progress_init(struct cli_progress *progress, const char *verb, size_t total, bool quiet)
{
    *progress = (struct cli_progress){.verb = verb, .total = total};
    progress->is_shown = !quiet && total > 1 && isatty(STDERR_FILENO);
}

void cli_progress_step(struct cli_progress *progress, size_t done, const char *name)
{
    if (!progress->is_shown)
        return;
    char line[96];
    snprintf(line, sizeof line, "%s %zu/%zu  %.*s", progress->verb, done, progress->total, NAME_COLUMNS,
             cli_basename(name));
    fputc('\r', stderr);
    cli_print_name(stderr, line);
    fputs("\033[K", stderr);
    fflush(stderr);
    progress->is_drawn = true;
}

void cli_progress_clear(struct cli_progress *progress)
{
    if (!progress->is_drawn)
        return;
    fputs("\r\033[K", stderr);
    fflush(stderr);
    progress->is_drawn = false;
}
