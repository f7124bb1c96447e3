// SPDX-License-Identifier: Apache-2.0
#include "tracer/collect_command.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <limits.h>
#include <signal.h>
#include <string.h>
#include <sys/signalfd.h>
#include <sys/stat.h>
#include <unistd.h>

#include "cli/arguments.h"
#include "cli/report.h"
#include "tracer/collect_source.h"
#include "tracer/trace/collect.h"

enum { ID_PID = 'p', ID_OUT = 'o', ID_FOLLOW = 'f', ID_QUIET = 'q', ID_FD = 256, ID_INTERVAL };

enum { INTERVAL_MAX_MS = 60000 };

struct options {
    const char *segment; // one of it,
    int pid;             // ... pid
    int fd;              // ... and fd; -1: none
    const char *out;
    bool follow, quiet;
    uint32_t interval_ms;
};

static const char help[] =
    "Usage: qut collect SEGMENT | --pid PID | --fd N   -o FILE [--follow]\n\n"
    "Takes the samples of a process that traces itself (libqut's qut_trace_open) to a .qtrace file: of its segment in\n"
    "memory, by its path (/dev/shm/...), by the process that has it, or by an inherited descriptor. The process is\n"
    "never stopped, and nothing that belongs to it is written to. That it died does not matter.\n\n"
    "Without --follow: what is there now. With it: until the trace is closed, the process ends, or this one is told\n"
    "to (SIGINT, SIGTERM); of a process that keeps all its samples, chunks that are in the file are given back, so\n"
    "that it always has room; of one that keeps the newest, they are copied before they are overwritten.\n\n"
    "Where the file cannot be written, the process goes on: what has no room in its segment meanwhile it counts as\n"
    "lost, and the file says so.\n\n"
    "Example: qut collect --pid 1234 --follow -o app.qtrace\n";

static const struct cli_argument arguments[] = {
    {"pid", "PID", ID_PID, 0, "the segment of this process"},
    {"fd", "N", ID_FD, 0, "the segment that this open descriptor is of"},
    {"output", "FILE", ID_OUT, 0, "where to; a file that is there is replaced"},
    {"follow", NULL, ID_FOLLOW, 0, "until the trace ends"},
    {"interval", "MS", ID_INTERVAL, 0, "between two looks, in milliseconds (default: 100)"},
    {"quiet", NULL, ID_QUIET, 0, "no remarks on standard error, errors only"},
    {"help", NULL, CLI_ID_HELP, 0, "this text"},
};

static int take_number(const char *option, const char *value, long least, long most, int *number)
{
    long taken;
    if (!cli_number(value, least, most, &taken))
        return cli_bad_value(option, value, "a number in its bounds");
    *number = (int)taken;
    return 0;
}

static int take_option(void *context, int id, const char *value)
{
    struct options *options = context;
    int number = 0;
    switch (id) {
    case ID_PID: return take_number("pid", value, 1, INT_MAX, &options->pid);
    case ID_FD: return take_number("fd", value, 0, INT_MAX, &options->fd);
    case ID_OUT: options->out = value; return 0;
    case ID_FOLLOW: options->follow = true; return 0;
    case ID_QUIET: options->quiet = true; return 0;
    case ID_INTERVAL:
        if (take_number("interval", value, 1, INTERVAL_MAX_MS, &number) != 0)
            return -1;
        options->interval_ms = (uint32_t)number;
        return 0;
    default: return -1;
    }
}

static int refuse(const char *name, const char *why)
{
    cli_report(stderr, name, "%s", why);
    return cli_usage_error("collect");
}

static int parse(struct options *options, int argc, char **argv)
{
    *options = (struct options){.fd = -1};
    const struct cli_parser parser = {.command = "collect",
                                      .help = help,
                                      .arguments = arguments,
                                      .argument_count = sizeof arguments / sizeof *arguments,
                                      .take = take_option,
                                      .context = options};
    int first;
    int status = cli_parse(&parser, argc, argv, &first);
    if (status != CLI_GO_ON)
        return status;
    if (first < argc)
        options->segment = argv[first++];
    if (first < argc)
        return refuse(argv[first], "one argument too many");
    int sources = (options->segment != NULL) + (options->pid != 0) + (options->fd >= 0);
    if (sources != 1)
        return refuse("collect", "needs one of SEGMENT, --pid and --fd");
    if (!options->out)
        return refuse("collect", "needs -o FILE");
    return CLI_GO_ON;
}

static const char *source_name(const struct options *options, char *text, size_t size)
{
    if (options->segment)
        return options->segment;
    if (options->pid)
        snprintf(text, size, "process %d", options->pid);
    else
        snprintf(text, size, "descriptor %d", options->fd);
    return text;
}

static int open_source(const struct options *options, struct collect_source *source, struct qutc_error *error)
{
    if (options->pid)
        return collect_source_of_process(source, options->pid, options->follow, error);
    if (options->segment)
        return collect_source_of_file(source, options->segment, options->follow, error);
    return collect_source_of_fd(source, options->fd, error);
}

// Checked before it is emptied: it may be the segment itself, or no file at all.
static int open_file(const char *path, int segment_fd, struct qutc_error *error)
{
    int fd = open(path, O_RDWR | O_CREAT | O_CLOEXEC, 0600);
    struct stat status, segment;
    if (fd < 0)
        return qutc_fail(error, QUTC_ERR_IO, "", 0, "%s", strerror(errno));
    bool is_file = fstat(fd, &status) == 0 && S_ISREG(status.st_mode);
    bool is_segment = fstat(segment_fd, &segment) == 0 && is_file && segment.st_dev == status.st_dev &&
                      segment.st_ino == status.st_ino;
    if (is_file && !is_segment && ftruncate(fd, 0) == 0)
        return fd;
    close(fd);
    return qutc_fail(error, QUTC_ERR_IO, "", 0, "%s",
                     !is_file     ? "is no regular file"
                     : is_segment ? "is the segment itself"
                                  : strerror(errno));
}

// SIGINT and SIGTERM become something to wait for, so that the file is always finished.
static int open_stop(void)
{
    sigset_t set;
    sigemptyset(&set);
    sigaddset(&set, SIGINT);
    sigaddset(&set, SIGTERM);
    sigprocmask(SIG_BLOCK, &set, NULL);
    signal(SIGXFSZ, SIG_IGN); // a write fails then, which is dealt with
    return signalfd(-1, &set, SFD_CLOEXEC);
}

static void say_result(const struct options *options, const struct collect_result *result)
{
    static const char *const ends[] = {[QUT_TRACE_FILE_END_CLOSED] = "",
                                       [QUT_TRACE_FILE_END_DIED] = "; the process ended without closing its trace",
                                       [QUT_TRACE_FILE_END_STOPPED] = "; the trace goes on"};
    if (!options->quiet)
        cli_report(stderr, options->out, "%" PRIu64 " bytes, %" PRIu64 " chunks of samples, %" PRIu64 " frames%s",
                   result->file_bytes, result->chunk_count, result->node_count, ends[result->end]);
}

static int say_failures(const struct options *options, const struct collect_result *result)
{
    char text[256];
    if (!result->failed_writes && result->has_trailer)
        return CLI_OK;
    cli_report(stderr, options->out, "could not be written %" PRIu64 " times; the first: %s", result->failed_writes,
               qutc_error_text(&result->first_failure, text, sizeof text));
    cli_report(stderr, options->out, "%s",
               result->has_trailer ? "what is missing is counted in it" : "it has no end; what is in it can be read");
    return CLI_NO;
}

static int run(const struct options *options, const struct collect_source *source, int file_fd)
{
    int stop_fd = open_stop();
    const struct collect_options collected = {.segment_fd = source->segment_fd,
                                              .file_fd = file_fd,
                                              .follow = options->follow && !source->is_gone,
                                              .interval_ms = options->interval_ms,
                                              .stop_fd = stop_fd,
                                              .process_fd = source->process_fd};
    struct collect_result result;
    struct qutc_error error = {0};
    int status = collect(&collected, &result, &error);
    if (stop_fd >= 0)
        close(stop_fd);
    if (status != 0) {
        char text[64];
        cli_report_error(stderr, source_name(options, text, sizeof text), &error);
        return CLI_BAD;
    }
    say_result(options, &result);
    return say_failures(options, &result);
}

int collect_command(int argc, char **argv)
{
    struct options options;
    int status = parse(&options, argc, argv);
    if (status != CLI_GO_ON)
        return status;
    struct collect_source source;
    struct qutc_error error = {0};
    char text[64];
    if (open_source(&options, &source, &error) != 0) {
        cli_report_error(stderr, source_name(&options, text, sizeof text), &error);
        return CLI_BAD;
    }
    int file_fd = open_file(options.out, source.segment_fd, &error);
    if (file_fd < 0) {
        cli_report_error(stderr, options.out, &error);
        status = CLI_BAD;
    } else {
        status = run(&options, &source, file_fd);
        // Some file systems tell only now.
        if (close(file_fd) != 0 && status == CLI_OK) {
            cli_report(stderr, options.out, "%s", strerror(errno));
            status = CLI_NO;
        }
    }
    collect_source_close(&source);
    return status;
}
