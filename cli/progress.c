// SPDX-License-Identifier: Apache-2.0
#include "cli/progress.h"

#include <stdio.h>
#include <unistd.h>

#include "base/clock_inline.h"
#include "cli/diagnostics.h"

enum { DRAW_EVERY_NS = 50000000, NAME_COLUMNS = 48 };

void cli_progress_begin(struct progress *progress, const char *what, bool quiet)
{
    *progress = (struct progress){.what = what, .is_shown = !quiet && isatty(STDERR_FILENO)};
    progress->next_ns = base_clock_now_ns() + DRAW_EVERY_NS; // short work shows nothing
}

void cli_progress_step(void *context, size_t done, size_t all)
{
    struct progress *progress = context;
    if (!progress->is_shown || !all || base_clock_now_ns() < progress->next_ns)
        return;
    fprintf(stderr, "\r%s: %s %u%%\033[K", cli_program, progress->what, (unsigned)((double)done * 100 / (double)all));
    fflush(stderr);
    progress->is_drawn = true;
    progress->next_ns = base_clock_now_ns() + DRAW_EVERY_NS;
}

void cli_progress_step_to(struct progress *progress, size_t done, size_t all, const char *name)
{
    if (!progress->is_shown)
        return;
    char line[96];
    snprintf(line, sizeof line, "%s %zu/%zu  %.*s", progress->what, done, all, NAME_COLUMNS, cli_basename(name));
    fputc('\r', stderr);
    cli_print_name(stderr, line);
    fputs("\033[K", stderr);
    fflush(stderr);
    progress->is_drawn = true;
}

void cli_progress_end(struct progress *progress)
{
    if (progress->is_drawn)
        fputs("\r\033[K", stderr);
    fflush(stderr);
    progress->is_drawn = false;
}
