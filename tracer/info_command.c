// SPDX-License-Identifier: Apache-2.0
#include "tracer/info_command.h"

#include <fcntl.h>
#include <stdbool.h>
#include <string.h>
#include <unistd.h>

#include "cli/arguments.h"
#include "cli/report.h"
#include "tracer/info.h"
#include "tracer/trace_options.h"

static const char help[] =
    "Usage: qut info FILE...\n\n"
    "Says what is in a trace: what was lost first of all, then whether its counts add up, how many samples of which\n"
    "kind there are of which thread, its size, the modules. FILE is a .qtrace file, or the segment of a process that\n"
    "runs, or of one that died (/dev/shm/..., /proc/PID/fd/N).\n\n"
    "  hits = stored + merged + throttled + lost + under way\n"
    "  stored + merged = here + overwritten + not readable\n\n"
    "Where a trace is incomplete or damaged, what there is is told of all the same, and the exit status is 1. With\n"
    "exit status 2 a FILE is no trace.\n\n"
    "Example: qut info app.qtrace\n";

static bool is_segment(const char *path)
{
    uint8_t magic[8] = {0};
    int fd = open(path, O_RDONLY | O_CLOEXEC);
    bool is = fd >= 0 && read(fd, magic, sizeof magic) == (ssize_t)sizeof magic &&
              memcmp(magic, QUT_TRACE_MAGIC, sizeof magic) == 0;
    if (fd >= 0)
        close(fd);
    return is;
}

static int print(const struct trace_options *options, const char *path)
{
    struct trace trace;
    struct qutc_error error = {0};
    if (trace_read(path, &trace, &error) != 0) {
        cli_report_error(stderr, path, &error);
        return CLI_BAD;
    }
    struct info info = info_of(&trace, is_segment(path));
    if (options->json)
        info_print_json(&info, stdout);
    else
        info_print_text(&info, stdout);
    struct trace_balance balance = trace_balance(&trace);
    bool is_good = trace.is_complete && !balance.hits_missing && !balance.samples_missing;
    trace_free(&trace);
    return is_good ? CLI_OK : CLI_NO;
}

int info_command(int argc, char **argv)
{
    struct trace_options options = {.command = "info"};
    int status = trace_options_parse(&options, TRACE_INFO, help, argc, argv);
    if (status != CLI_GO_ON)
        return status;
    if (!options.file_count)
        return trace_options_one_file(&options);
    status = CLI_OK;
    for (int i = 0; i < options.file_count; i++) {
        int one = print(&options, options.files[i]);
        status = one > status ? one : status;
    }
    return status;
}
