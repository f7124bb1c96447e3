// SPDX-License-Identifier: Apache-2.0
#include "tracer/progress.h"

#include <stdio.h>
#include <time.h>
#include <unistd.h>

#include "cli/report.h"

enum { DRAW_EVERY_NS = 50000000 };

static uint64_t now_ns(void)
{
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (uint64_t)now.tv_sec * 1000000000u + (uint64_t)now.tv_nsec;
}

void progress_begin(struct progress *progress, const char *what, bool quiet)
{
    *progress = (struct progress){.what = what, .is_shown = !quiet && isatty(STDERR_FILENO)};
    progress->next_ns = now_ns() + DRAW_EVERY_NS; // short work shows nothing
}

void progress_step(void *context, size_t done, size_t all)
{
    struct progress *progress = context;
    if (!progress->is_shown || !all || now_ns() < progress->next_ns)
        return;
    fprintf(stderr, "\r%s: %s %u%%\033[K", cli_program, progress->what, (unsigned)((double)done * 100 / (double)all));
    fflush(stderr);
    progress->is_drawn = true;
    progress->next_ns = now_ns() + DRAW_EVERY_NS;
}

void progress_end(struct progress *progress)
{
    if (progress->is_drawn)
        fputs("\r\033[K", stderr);
    fflush(stderr);
    progress->is_drawn = false;
}
