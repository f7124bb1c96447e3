// SPDX-License-Identifier: Apache-2.0
// Budgets: what the monitor uses itself, and what it makes others keep and carry. There is no knob but the rate.
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "base/clock_inline.h"
#include "tracer/monitor/inside.h"

enum { CALM_WINDOWS = 5, DAY_S = 86400 };
static const double far_below = 0.4; // twice as much is still below
static const double ns_per_s = 1e9;

static void say_error(const struct monitor *monitor, const char *path)
{
    struct base_error error = {0};
    char text[256];
    base_fail_errno(&error, errno);
    if (monitor->options.say)
        monitor->options.say(monitor->options.context, path, base_error_text(&error, text, sizeof text));
}

// A file is there when it is whole. Programs of all users read it.
static void tell_folder(const struct monitor *monitor, const char *folder)
{
    char *path = NULL, *next = NULL, text[16];
    const unsigned halvings = monitor->rate.halvings;
    if (asprintf(&path, "%s/" AGENT_FOLDER_RATE, folder) < 0)
        path = NULL;
    if (asprintf(&next, "%s/." AGENT_FOLDER_RATE, folder) < 0)
        next = NULL;
    if (path && next && !halvings) {
        if (unlink(path) != 0 && errno != ENOENT)
            say_error(monitor, path);
    } else if (path && next) {
        unlink(next); // of a monitor that was killed
        const int fd = open(next, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0644);
        const int length = snprintf(text, sizeof text, "%u\n", halvings);
        const bool is_good =
            fd >= 0 && fchmod(fd, 0644) == 0 && write(fd, text, (size_t)length) == length && rename(next, path) == 0;
        if (!is_good)
            say_error(monitor, path);
        if (fd >= 0)
            close(fd);
    }
    free(path);
    free(next);
}

static void tell(const struct monitor *monitor)
{
    for (size_t i = 0; i < monitor->options.folder_count; i++)
        tell_folder(monitor, monitor->options.folders[i]);
}

static bool has_budget(const struct monitor_options *options)
{
    return options->cpu_share_most > 0 || options->bytes_per_day_most > 0;
}

static unsigned read_told(const char *folder)
{
    char *path = NULL;
    unsigned halvings = 0;
    FILE *file = asprintf(&path, "%s/" AGENT_FOLDER_RATE, folder) < 0 ? NULL : fopen(path, "re");
    if (!file || fscanf(file, "%2u", &halvings) != 1)
        halvings = 0;
    if (file)
        fclose(file);
    free(path);
    return halvings < AGENT_FOLDER_HALVINGS_MAX ? halvings : AGENT_FOLDER_HALVINGS_MAX;
}

static void take_stock(struct monitor *monitor)
{
    struct upload_balance balance;
    upload_spool_balance(monitor->spool, &balance);
    monitor->rate.at_ns = base_clock_now_ns();
    monitor->rate.cpu_ns = base_clock_ns(CLOCK_PROCESS_CPUTIME_ID);
    monitor->rate.bytes = balance.taken_bytes;
}

void monitor_rate_begin(struct monitor *monitor)
{
    const struct monitor_options *options = &monitor->options;
    const unsigned told = options->folder_count ? read_told(options->folders[0]) : 0;
    take_stock(monitor);
    if (has_budget(options))
        monitor->rate.halvings = told;
    else if (told)
        tell(monitor);
}

// Of 1: just the budget. 0: there is none.
static double used_part(const struct monitor *monitor, const struct monitor_rate *before)
{
    const struct monitor_options *options = &monitor->options;
    const struct monitor_rate *now = &monitor->rate;
    const double ns = (double)(now->at_ns - before->at_ns);
    double part = 0;
    if (ns <= 0)
        return 0;
    if (options->cpu_share_most > 0)
        part = (double)(now->cpu_ns - before->cpu_ns) / ns / options->cpu_share_most;
    if (options->bytes_per_day_most > 0) {
        const double bytes_part =
            (double)(now->bytes - before->bytes) / (ns / ns_per_s) * DAY_S / options->bytes_per_day_most;
        part = bytes_part > part ? bytes_part : part;
    }
    return part;
}

unsigned monitor_keep_budget(struct monitor *monitor)
{
    struct monitor_rate *rate = &monitor->rate;
    const struct monitor_rate before = *rate;
    if (!has_budget(&monitor->options))
        return 0;
    take_stock(monitor);
    const double part = used_part(monitor, &before);
    rate->calm = part < far_below ? rate->calm + 1 : 0;
    if (part > 1 && rate->halvings < AGENT_FOLDER_HALVINGS_MAX) {
        rate->halvings++;
    } else if (rate->calm >= CALM_WINDOWS && rate->halvings) {
        rate->halvings--;
        rate->calm = 0;
    }
    if (rate->halvings != before.halvings)
        tell(monitor);
    return rate->halvings;
}
