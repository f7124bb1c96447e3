// SPDX-License-Identifier: Apache-2.0
#include "tracer/info_command.h"

#include <fcntl.h>
#include <stdbool.h>
#include <string.h>
#include <unistd.h>

#include "cli/arguments.h"
#include "cli/report.h"
#include "tracer/info.h"

enum { ID_JSON = 256 };

struct options {
    bool json;
};

static const char help[] =
    "Usage: qut info FILE...\n\n"
    "Says what is in a trace: what was lost first of all, then whether its counts add up, how many samples of which\n"
    "kind there are of which thread, its size, the modules. FILE is a .qtrace file, or the segment of a process that\n"
    "runs, or of one that died (/dev/shm/..., /proc/PID/fd/N).\n\n"
    "  hits = stored + merged + throttled + lost + under way\n"
    "  stored + merged = here + overwritten + not readable\n\n"
    "Exit status: 0; 1 where the trace is incomplete or damaged; 2 where a FILE is none.\n\n"
    "Example: qut info app.qtrace\n";

static const struct cli_argument arguments[] = {
    {"json", NULL, ID_JSON, 0, "one JSON document for each FILE"},
    {"help", NULL, CLI_ID_HELP, 0, "this text"},
};

static int take_option(void *context, int id, const char *value)
{
    struct options *options = context;
    (void)value;
    if (id != ID_JSON)
        return -1;
    options->json = true;
    return 0;
}

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

static int print(const struct options *options, const char *path)
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
    struct options options = {0};
    const struct cli_parser parser = {.command = "info",
                                      .help = help,
                                      .arguments = arguments,
                                      .argument_count = sizeof arguments / sizeof *arguments,
                                      .take = take_option,
                                      .context = &options};
    int first;
    int status = cli_parse(&parser, argc, argv, &first);
    if (status != CLI_GO_ON)
        return status;
    if (first == argc) {
        cli_report(stderr, "info", "needs a FILE");
        return cli_usage_error("info");
    }
    status = CLI_OK;
    for (; first < argc; first++) {
        int one = print(&options, argv[first]);
        status = one > status ? one : status;
    }
    return status;
}
