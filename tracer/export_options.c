// SPDX-License-Identifier: Apache-2.0
#include "tracer/export_options.h"

#include <assert.h>
#include <limits.h>
#include <string.h>

#include "cli/arguments.h"
#include "cli/report.h"

enum {
    ID_FORMAT = 'f',
    ID_OUT = 'o',
    ID_QUIET = 'q',
    ID_THREAD = 256,
    ID_WEIGHT,
    ID_DEBUG_ROOT,
    ID_SYSROOT,
    ID_NO_INLINES,
    ID_LINES,
    ID_DEBUGINFOD,
    ID_NO_SLICES,
};

static const char help[] =
    "Usage: qut export FILE -f FORMAT [-o OUT]\n\n"
    "Writes a trace in a format that other programs read:\n\n"
    "  perfetto     Perfetto's protobuf: all there is (ui.perfetto.dev, trace_processor)\n"
    "  speedscope   speedscope's JSON, a profile for each thread\n"
    "  pprof        profile.proto: count, time, processor time and bytes by stack, thread and kind (go tool pprof)\n"
    "  collapsed    a line for each stack (flamegraph.pl and many others)\n"
    "  nanoscope    Nanoscope's text, of one thread\n"
    "  chrome       Chrome's trace events, JSON (Perfetto, chrome://tracing, Firefox Profiler, speedscope)\n"
    "  perf-script  text as of perf script (Firefox Profiler, Perfetto, speedscope, FlameGraph's scripts)\n\n"
    "FILE is a .qtrace file, or the segment of a process that runs, or of one that died (/dev/shm/...). Without -f,\n"
    "OUT's name says the format; without -o, OUT is beside FILE. \"-\" is standard output. A file that is there is\n"
    "replaced when the new one is whole. What is missing in the trace is said first, on standard error.\n\n"
    "Exit status: 0; 1 where the trace itself is incomplete (OUT has what there is); 2 where there is no OUT.\n\n"
    "Example: qut export app.qtrace -f speedscope\n";

static const struct cli_argument arguments[] = {
    {"format", "FORMAT", ID_FORMAT, 0, "one of those above"},
    {"output", "OUT", ID_OUT, 0, "where to; \"-\": standard output"},
    {"thread", "TID", ID_THREAD, 0, "this thread only (nanoscope: else the one with most samples)"},
    {"weight", "WHAT", ID_WEIGHT, 0,
     "samples, time, cpu or bytes: what a stack counts for (collapsed: samples; speedscope: time, in its order)"},
    {"debug-root", "DIR", ID_DEBUG_ROOT, 0, "where separate debug files are (/usr/lib/debug)"},
    {"sysroot", "DIR", ID_SYSROOT, 0, "open the files of modules below DIR: a trace of another machine"},
    {"no-inlines", NULL, ID_NO_INLINES, 0, "no inlined functions, which need debug information: faster"},
    {"lines", NULL, ID_LINES, 0, "source files and lines, where there is debug information"},
    {"debuginfod", NULL, ID_DEBUGINFOD, 0, "ask $DEBUGINFOD_URLS for debug files: it learns which builds you look at"},
    {"no-slices", NULL, ID_NO_SLICES, 0, "perfetto: samples only, not who was entered and left when"},
    {"quiet", NULL, ID_QUIET, 0, "no remarks on standard error, errors only"},
    {"help", NULL, CLI_ID_HELP, 0, "this text"},
};

enum { ARGUMENT_COUNT = sizeof arguments / sizeof *arguments };
static_assert((int)ARGUMENT_COUNT <= (int)CLI_ARGUMENTS_MAX, "the table of getopt has room for them");

static int take_format(struct export_command_options *options, const char *value)
{
    options->format = export_find(value);
    return options->format ? 0
                           : cli_bad_value("format", value,
                                           "one of perfetto, speedscope, pprof, collapsed, nanoscope, chrome, "
                                           "perf-script");
}

static int take_weight(struct export_command_options *options, const char *value)
{
    static const char *const names[EXPORT_WEIGHT_COUNT] = {"samples", "time", "cpu", "bytes"};
    for (int i = 0; i < EXPORT_WEIGHT_COUNT; i++)
        if (strcmp(names[i], value) == 0) {
            options->weight = i;
            return 0;
        }
    return cli_bad_value("weight", value, "samples, time, cpu or bytes");
}

static int take_thread(struct export_command_options *options, const char *value)
{
    long number;
    if (!cli_number(value, 1, INT_MAX, &number))
        return cli_bad_value("thread", value, "the number of a thread");
    options->tid = (uint32_t)number;
    return 0;
}

static int take_option(void *context, int id, const char *value)
{
    struct export_command_options *options = context;
    switch (id) {
    case ID_FORMAT: return take_format(options, value);
    case ID_OUT: options->out = value; return 0;
    case ID_THREAD: return take_thread(options, value);
    case ID_WEIGHT: return take_weight(options, value);
    case ID_DEBUG_ROOT: options->debug_root = value; return 0;
    case ID_SYSROOT: options->system_root = value; return 0;
    case ID_NO_INLINES: options->no_inlines = true; return 0;
    case ID_LINES: options->lines = true; return 0;
    case ID_DEBUGINFOD: options->debuginfod = true; return 0;
    case ID_NO_SLICES: options->no_slices = true; return 0;
    case ID_QUIET: options->quiet = true; return 0;
    default: return -1;
    }
}

static int refuse(const char *name, const char *why)
{
    cli_report(stderr, name, "%s", why);
    return cli_usage_error("export");
}

// The format with the longest extension that the name ends in.
static const struct export_format *format_of(const char *out)
{
    const struct export_format *found = NULL;
    size_t length = strlen(out);
    for (unsigned i = 0; export_formats[i]; i++) {
        size_t size = strlen(export_formats[i]->extension);
        if (size < length && strcmp(out + length - size, export_formats[i]->extension) == 0 &&
            (!found || size > strlen(found->extension)))
            found = export_formats[i];
    }
    return found;
}

int export_options_parse(struct export_command_options *options, int argc, char **argv)
{
    *options = (struct export_command_options){.weight = -1};
    const struct cli_parser parser = {.command = "export",
                                      .help = help,
                                      .arguments = arguments,
                                      .argument_count = ARGUMENT_COUNT,
                                      .take = take_option,
                                      .context = options};
    int first;
    int status = cli_parse(&parser, argc, argv, &first);
    if (status != CLI_GO_ON)
        return status;
    if (first >= argc)
        return refuse("export", "needs a FILE");
    options->file = argv[first++];
    if (first < argc)
        return refuse(argv[first], "one argument too many");
    if (!options->format && options->out)
        options->format = format_of(options->out);
    if (!options->format)
        return refuse("export",
                      options->out ? "needs -f FORMAT: the name of the output does not tell" : "needs -f FORMAT");
    return CLI_GO_ON;
}
