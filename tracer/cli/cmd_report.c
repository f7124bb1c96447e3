// SPDX-License-Identifier: Apache-2.0
#include "cli/arguments.h"
#include "cli/commands.h"
#include "cli/diagnostics.h"
#include "tracer/cli/selection_options.h"
#include "tracer/cli/trace_output.h"
#include "tracer/report/report.h"

static const char help[] =
    "Usage: qut report [FILE] [-o OUT]\n"
    "       qut report FILE... -o OUT\n\n"
    "Writes a trace as one HTML page that needs nothing else, no network either: what was lost, a timeline with a\n"
    "track for each thread, a flame graph, a table of the functions. A time that is selected in the timeline filters\n"
    "the rest. The page has the whole trace in it, a few bytes for each sample.\n\n"
    "FILE is a .qtrace file, or the segment of a process that runs, or of one that died (/dev/shm/...); without one\n"
    "it is qut.qtrace, as of qut record. Without -o, OUT is beside FILE, with .html. A file that is there is replaced\n"
    "when the new one is whole.\n\n"
    "Several FILEs, of any hosts and runs, become one page: equal stacks are one, wherever each host had the code; "
    "what\n"
    "happened at the same time by the hosts' clocks stands below each other. A FILE may have labels, which its "
    "processes\n"
    "are called by: FILE,host=NAME,service=NAME,version=NAME.\n\n"
    "--kind, --pid, --thread and --between make it a page of a part of the trace.\n\n"
    "What is missing in the trace is said first, on standard error and in the page; OUT has what there is, and the\n"
    "exit status is 1. With exit status 2 no OUT was written.\n\n"
    "Example: qut report app.qtrace -o app.html\n"
    "         qut report web1.qtrace,host=web1 web2.qtrace,host=web2 -o fleet.html\n";

static int write_page(const struct trace_job *job, const struct trace *trace, const struct names *names,
                      struct sink *sink, struct base_error *error)
{
    (void)trace;
    return report_write(&job->selection, names, sink, error);
}

static int select_part(struct trace_job *job, const struct trace *trace, struct base_error *error)
{
    const struct trace_options *options = job->options;
    struct selection_wanted wanted = options->wanted;
    if (!options->has_kind)
        wanted.kind = SELECTION_ALL;
    if (analysis_selection_make(&job->selection, trace, &wanted, error) != 0)
        return -1;
    return cli_selection_fits(options, trace->path, &job->selection) ? 0 : CLI_BAD;
}

static int report_command(const struct cli_command *command, int argc, char **argv)
{
    (void)command;
    struct trace_options options = {.command = "report", .lines = true};
    int status = cli_trace_options_parse(&options, TRACE_REPORT, help, argc, argv);
    if (status == CLI_GO_ON)
        status = cli_trace_options_files_together(&options);
    if (status != CLI_GO_ON)
        return status;
    struct trace_job job = {.options = &options, .extension = ".html", .write = write_page, .select = select_part};
    status = cli_trace_command_run(&job);
    analysis_selection_free(&job.selection);
    return status;
}

const struct cli_command command_report = {"report", "write a trace as one HTML page: timeline, flame graph, losses",
                                           report_command, NULL};
