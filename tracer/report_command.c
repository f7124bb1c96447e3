// SPDX-License-Identifier: Apache-2.0
#include "tracer/report_command.h"

#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "cli/arguments.h"
#include "cli/report.h"
#include "tracer/export/losses.h"
#include "tracer/progress.h"
#include "tracer/report/report.h"

enum {
    ID_OUT = 'o',
    ID_QUIET = 'q',
    ID_DEBUG_ROOT = 256,
    ID_SYSROOT,
    ID_NO_INLINES,
    ID_NO_LINES,
    ID_DEBUGINFOD,
};

enum { MISSING_SHOWN = 5 };

struct report_options {
    const char *file;
    const char *out; // NULL: beside the file
    const char *debug_root, *system_root;
    bool no_inlines, no_lines, debuginfod, quiet;
};

static const char help[] =
    "Usage: qut report FILE [-o OUT]\n\n"
    "Writes a trace as one HTML page that needs nothing else, no network either: what was lost, a timeline with a\n"
    "track for each thread, a flame graph, a table of the functions. A time that is selected in the timeline filters\n"
    "the rest. The page has the whole trace in it, a few bytes for each sample.\n\n"
    "FILE is a .qtrace file, or the segment of a process that runs, or of one that died (/dev/shm/...). Without -o,\n"
    "OUT is beside FILE, with .html. \"-\" is standard output. A file that is there is replaced when the new one is\n"
    "whole. What is missing in the trace is said first, on standard error and in the page.\n\n"
    "Exit status: 0; 1 where the trace itself is incomplete (OUT has what there is); 2 where there is no OUT.\n\n"
    "Example: qut report app.qtrace -o app.html\n";

static const struct cli_argument arguments[] = {
    {"output", "OUT", ID_OUT, 0, "where to; \"-\": standard output"},
    {"debug-root", "DIR", ID_DEBUG_ROOT, 0, "where separate debug files are (/usr/lib/debug)"},
    {"sysroot", "DIR", ID_SYSROOT, 0, "open the files of modules below DIR: a trace of another machine"},
    {"no-inlines", NULL, ID_NO_INLINES, 0, "no inlined functions, which need debug information: faster"},
    {"no-lines", NULL, ID_NO_LINES, 0, "no source files and lines: faster"},
    {"debuginfod", NULL, ID_DEBUGINFOD, 0, "ask $DEBUGINFOD_URLS for debug files: it learns which builds you look at"},
    {"quiet", NULL, ID_QUIET, 0, "no remarks on standard error, errors only"},
    {"help", NULL, CLI_ID_HELP, 0, "this text"},
};

static int take_option(void *context, int id, const char *value)
{
    struct report_options *options = context;
    switch (id) {
    case ID_OUT: options->out = value; return 0;
    case ID_DEBUG_ROOT: options->debug_root = value; return 0;
    case ID_SYSROOT: options->system_root = value; return 0;
    case ID_NO_INLINES: options->no_inlines = true; return 0;
    case ID_NO_LINES: options->no_lines = true; return 0;
    case ID_DEBUGINFOD: options->debuginfod = true; return 0;
    case ID_QUIET: options->quiet = true; return 0;
    default: return -1;
    }
}

static int parse(struct report_options *options, int argc, char **argv)
{
    *options = (struct report_options){0};
    const struct cli_parser parser = {.command = "report",
                                      .help = help,
                                      .arguments = arguments,
                                      .argument_count = sizeof arguments / sizeof *arguments,
                                      .take = take_option,
                                      .context = options};
    int first;
    int status = cli_parse(&parser, argc, argv, &first);
    if (status != CLI_GO_ON)
        return status;
    if (first >= argc || first + 1 < argc) {
        cli_report(stderr, first < argc ? argv[first + 1] : "report", "%s",
                   first < argc ? "one argument too many" : "needs a FILE");
        return cli_usage_error("report");
    }
    options->file = argv[first];
    return CLI_GO_ON;
}

static void say_loss(void *context, const char *text)
{
    const struct report_options *options = context;
    cli_report(stderr, options->file, "%s", text);
}

// FILE with .html instead of .qtrace.
static char *name_beside(const char *file)
{
    static const char own[] = ".qtrace", html[] = ".html";
    size_t length = strlen(file), size = length + sizeof html;
    if (length > sizeof own - 1 && strcmp(file + length - (sizeof own - 1), own) == 0)
        length -= sizeof own - 1;
    char *name = malloc(size);
    if (name)
        snprintf(name, size, "%.*s%s", (int)length, file, html);
    return name;
}

static void say_missing_names(const struct names *names)
{
    const struct names_missing *missing;
    size_t count = names_missing(names, &missing);
    for (size_t i = 0; i < count && i < MISSING_SHOWN; i++)
        cli_report(stderr, missing[i].path, "%zu places have no names: %s", missing[i].node_count, missing[i].why);
    if (count > MISSING_SHOWN)
        cli_report(stderr, "names", "%zu more modules have none", count - MISSING_SHOWN);
}

static struct names *look_up_names(const struct trace *trace, const struct report_options *options,
                                   struct qutc_error *error)
{
    struct progress progress;
    const struct names_options wanted = {.debug_root = options->debug_root,
                                         .system_root = options->system_root,
                                         .inlined = !options->no_inlines,
                                         .lines = !options->no_lines,
                                         .debuginfod = options->debuginfod,
                                         .progress = progress_step,
                                         .progress_context = &progress};
    progress_begin(&progress, "names", options->quiet);
    struct names *names = names_of(trace, &wanted, error);
    progress_end(&progress);
    return names;
}

static int write_out(const struct trace *trace, const struct names *names, const char *out, struct qutc_error *error)
{
    struct sink *sink = sink_file(out, error);
    if (!sink)
        return -1;
    int status = report_write(trace, names, sink, error);
    struct qutc_error closing = {0};
    if (sink_close(sink, status == 0, &closing) != 0 && status == 0) {
        *error = closing;
        status = -1;
    }
    return status;
}

static int report_trace(const struct trace *trace, struct report_options *options)
{
    struct qutc_error error = {0};
    if (!options->quiet)
        losses_say(trace, say_loss, options);
    struct names *names = look_up_names(trace, options, &error);
    if (!names) {
        cli_report_error(stderr, options->file, &error);
        return CLI_BAD;
    }
    if (!options->quiet)
        say_missing_names(names);
    int status = write_out(trace, names, options->out, &error);
    names_free(names);
    if (status != 0) {
        cli_report_error(stderr, options->out, &error);
        return CLI_BAD;
    }
    return trace->is_complete ? CLI_OK : CLI_NO;
}

int report_command(int argc, char **argv)
{
    struct report_options options;
    int status = parse(&options, argc, argv);
    if (status != CLI_GO_ON)
        return status;
    signal(SIGPIPE, SIG_IGN); // a reader that goes away is an error like another
    char *beside = options.out ? NULL : name_beside(options.file);
    if (!options.out)
        options.out = beside;
    struct trace trace;
    struct qutc_error error = {0};
    if (!options.out) {
        cli_report(stderr, options.file, "out of memory");
        status = CLI_BAD;
    } else if (trace_read(options.file, &trace, &error) != 0) {
        cli_report_error(stderr, options.file, &error);
        status = CLI_BAD;
    } else {
        status = report_trace(&trace, &options);
        trace_free(&trace);
    }
    free(beside);
    return status;
}
