// SPDX-License-Identifier: Apache-2.0
#include <fcntl.h>
#include <limits.h>
#include <stdbool.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "cli/arguments.h"
#include "cli/commands.h"
#include "cli/diagnostics.h"
#include "tracer/cli/selection_options.h"
#include "tracer/info/info.h"
#include "tracer/info/info_tables.h"

static const char help[] =
    "Usage: qut info [FILE]...\n\n"
    "Says what is in a trace: what was lost first of all, then whether its counts add up, how many samples of which\n"
    "kind there are of which thread, its size, the modules. FILE is a .qtrace file, or the segment of a process that\n"
    "runs, or of one that died (/dev/shm/..., /proc/PID/fd/N); without one it is qut.qtrace, as of qut record.\n\n"
    "  hits = stored + merged + throttled + lost + under way\n"
    "  stored + merged = here + overwritten + not readable\n\n"
    "--top, --by-thread, --blocked and --locks add tables: what cost most, what each thread did, what threads waited\n"
    "for, and for whom. An error beside\n"
    "a share is what chance makes of so few samples: with 95 % the true share is no farther away. --pid, --thread and\n"
    "--between make these tables of a part of the trace.\n\n"
    "Where a trace is incomplete or damaged, what there is is told of all the same, and the exit status is 1. With\n"
    "exit status 2 a FILE is no trace, or memory was short.\n\n"
    "Example: qut info --top 10 --locks app.qtrace\n";

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

// FILE.parts: where a recorder keeps the traces of processes until they are put behind FILE's first one.
static bool find_parts(const char *path, char parts[PATH_MAX])
{
    struct stat status;
    return snprintf(parts, PATH_MAX, "%s.parts", path) < PATH_MAX && stat(parts, &status) == 0 &&
           S_ISDIR(status.st_mode);
}

// 0; -1 with *error filled; or an exit status, where it has said why.
static int print_loaded(const struct trace_options *options, const struct trace *trace, struct base_error *error)
{
    char parts[PATH_MAX];
    struct info info = info_of(trace, is_segment(trace->path));
    const struct names_options wanted = {.debug_root = options->debug_root,
                                         .system_root = options->system_root,
                                         .inlined = !options->no_inlines && info_tables_wanted(&options->info),
                                         .debuginfod = options->debuginfod};
    struct quality quality;
    struct selection selection;
    if (info_tables_select(&selection, trace, &options->wanted, error) != 0)
        return -1;
    if (!cli_selection_fits(options, trace->path, &selection)) {
        analysis_selection_free(&selection);
        return CLI_BAD;
    }
    struct names *names = names_of(trace, &wanted, error);
    if (!names) {
        analysis_selection_free(&selection);
        return -1;
    }
    info.wanted = &options->info;
    info.parts = find_parts(trace->path, parts) ? parts : NULL;
    info.names = names;
    info.selection = &selection;
    int result = export_quality_make(&quality, trace, names);
    info.quality = &quality;
    if (result == 0)
        result = (options->json ? info_print_json : info_print_text)(&info, stdout);
    names_free(names);
    analysis_selection_free(&selection);
    return result == 0 ? 0 : base_fail(error, BASE_ERR_NO_MEMORY, "", 0, "not all of it is printed");
}

static int print(const struct trace_options *options, const char *path)
{
    struct trace trace;
    struct base_error error = {0};
    if (trace_read(path, &trace, &error) != 0) {
        cli_report_error(stderr, path, &error);
        return CLI_BAD;
    }
    struct trace_balance balance = trace_balance(&trace);
    bool is_good = trace.is_complete && !balance.hits_missing && !balance.samples_missing;
    int status = is_good ? CLI_OK : CLI_NO;
    int printed = print_loaded(options, &trace, &error);
    if (printed < 0)
        cli_report_error(stderr, path, &error);
    if (printed != 0)
        status = CLI_BAD;
    trace_free(&trace);
    return status;
}

static int info_command(const struct cli_command *command, int argc, char **argv)
{
    (void)command;
    struct trace_options options = {.command = "info"};
    int status = cli_trace_options_parse(&options, TRACE_INFO, help, argc, argv);
    if (status != CLI_GO_ON)
        return status;
    if (cli_selects_a_part(&options) && !info_tables_wanted(&options.info))
        return cli_trace_options_refuse(
            &options, "info",
            "--pid, --thread and --between select what --top, --by-thread, --blocked and --locks show");
    status = cli_trace_options_some_file(&options);
    if (status != CLI_GO_ON)
        return status;
    status = CLI_OK;
    for (int i = 0; i < options.file_count; i++) {
        int one = print(&options, options.files[i]);
        status = one > status ? one : status;
    }
    return status;
}

const struct cli_command command_info = {"info", "say what is in a trace: losses, counts, threads, sizes", info_command,
                                         NULL};
