// SPDX-License-Identifier: Apache-2.0
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <signal.h>
#include <string.h>
#include <sys/signalfd.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/quantity.h"
#include "cli/arguments.h"
#include "cli/commands.h"
#include "cli/diagnostics.h"
#include "tracer/cli/collect_source.h"
#include "tracer/cli/trace_options.h"
#include "tracer/collect/collect.h"

static const char help[] =
    "Usage: qut collect SEGMENT | --pid PID | --fd N   -o FILE [--follow]\n\n"
    "Takes the samples of a process that traces itself (libqut's qut_trace_open) to a .qtrace file: of its segment in\n"
    "memory, by its path (/dev/shm/...), by the process that has it, or by an inherited descriptor. The process is\n"
    "never stopped, and nothing that belongs to it is written to. That it died does not matter.\n\n"
    "Without --follow: what is there now. With it: until the trace is closed, the process ends, or this one is told\n"
    "to (SIGINT, SIGTERM); of a process that keeps all its samples, chunks that are in the file are given back, so\n"
    "that it always has room; of one that keeps the newest, they are copied before they are overwritten. FILE can be\n"
    "read before it is finished.\n\n"
    "What the process lost is no failure of this: qut info says it of FILE. Where FILE cannot be written, the process\n"
    "goes on, what has no room in its segment meanwhile it counts as lost, and the exit status is 1.\n\n"
    "Example: qut collect --pid 1234 --follow -o app.qtrace\n";

static int parse(struct trace_options *options, int argc, char **argv)
{
    int status = cli_trace_options_parse(options, TRACE_COLLECT, help, argc, argv);
    if (status != CLI_GO_ON)
        return status;
    if (options->file_count > 1)
        return cli_trace_options_refuse(options, options->files[1], "one argument too many");
    if (options->file_count + (options->pid != 0) + (options->fd >= 0) != 1)
        return cli_trace_options_refuse(options, "collect", "needs one of SEGMENT, --pid and --fd");
    if (!options->out)
        return cli_trace_options_refuse(options, "collect", "needs -o FILE");
    if (strcmp(options->out, "-") == 0)
        return cli_trace_options_refuse(options, "-o -", "is no file, which a trace is collected to");
    return CLI_GO_ON;
}

static const char *source_name(const struct trace_options *options, char *text, size_t size)
{
    if (options->file_count)
        return options->files[0];
    if (options->pid)
        snprintf(text, size, "process %d", options->pid);
    else
        snprintf(text, size, "descriptor %d", options->fd);
    return text;
}

static int open_source(const struct trace_options *options, struct collect_source *source, struct base_error *error)
{
    if (options->pid)
        return cli_collect_source_of_process(source, options->pid, options->follow, error);
    if (options->file_count)
        return cli_collect_source_of_file(source, options->files[0], options->follow, error);
    return cli_collect_source_of_fd(source, options->fd, error);
}

// Checked before it is emptied: it may be the segment itself, or no file at all.
static int open_file(const char *path, int segment_fd, struct base_error *error)
{
    int fd = open(path, O_RDWR | O_CREAT | O_CLOEXEC, 0600);
    struct stat status, segment;
    if (fd < 0)
        return base_fail_errno(error, errno);
    bool is_file = fstat(fd, &status) == 0 && S_ISREG(status.st_mode);
    bool is_segment = fstat(segment_fd, &segment) == 0 && is_file && segment.st_dev == status.st_dev &&
                      segment.st_ino == status.st_ino;
    if (is_file && !is_segment && ftruncate(fd, 0) == 0)
        return fd;
    close(fd);
    return base_fail(error, BASE_ERR_IO, "", 0, "%s",
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

static void say_result(const struct trace_options *options, const struct collect_result *result)
{
    static const char *const ends[] = {[QUT_TRACE_FILE_END_CLOSED] = "",
                                       [QUT_TRACE_FILE_END_DIED] = "; the process ended without closing its trace",
                                       [QUT_TRACE_FILE_END_STOPPED] = "; the trace goes on",
                                       [QUT_TRACE_FILE_END_EXEC] = "; the process went on as another program"};
    if (!options->quiet)
        cli_report(stderr, options->out, "%s, %s chunks of samples, %s frames%s",
                   base_quantity_bytes(result->file_bytes).text, base_quantity_count(result->chunk_count).text,
                   base_quantity_count(result->node_count).text, ends[result->end]);
}

static int say_failures(const struct trace_options *options, const struct collect_result *result)
{
    char text[256];
    if (!result->failed_writes && result->has_trailer)
        return CLI_OK;
    cli_report(stderr, options->out, "could not be written %" PRIu64 " times; the first: %s", result->failed_writes,
               base_error_text(&result->first_failure, text, sizeof text));
    cli_report(stderr, options->out, "%s",
               result->has_trailer ? "what is missing is counted in it" : "it has no end; what is in it can be read");
    return CLI_NO;
}

static int run(const struct trace_options *options, const struct collect_source *source, int file_fd)
{
    int stop_fd = open_stop();
    const struct collect_options collected = {.segment_fd = source->segment_fd,
                                              .file_fd = file_fd,
                                              .follow = options->follow && !source->is_gone,
                                              .interval_ms = options->interval_ms,
                                              .stop_fd = stop_fd,
                                              .process_fd = source->process_fd};
    struct collect_result result;
    struct base_error error = {0};
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

static int collect_command(const struct cli_command *command, int argc, char **argv)
{
    (void)command;
    struct trace_options options = {.command = "collect"};
    int status = parse(&options, argc, argv);
    if (status != CLI_GO_ON)
        return status;
    struct collect_source source;
    struct base_error error = {0};
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
    cli_collect_source_close(&source);
    return status;
}

const struct cli_command command_collect = {"collect", "take the samples of a process that traces itself to a file",
                                            collect_command, NULL};
