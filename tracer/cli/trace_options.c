// SPDX-License-Identifier: Apache-2.0
#include "tracer/cli/trace_options.h"

#include <assert.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "cli/arguments.h"
#include "cli/diagnostics.h"
#include "tracer/cli/record_options.h"
#include "tracer/cli/selection_options.h"

enum {
    ID_FORMAT = 'f',
    ID_OUT = 'o',
    ID_PID = 'p',
    ID_QUIET = 'q',
    ID_THREAD = 256,
    ID_KIND,
    ID_PIDS,
    ID_BETWEEN,
    ID_SHOW_AGENT,
    ID_SHOW_INTERPRETERS,
    ID_NO_NAMES,
    ID_WEIGHT,
    ID_NO_SLICES,
    ID_DEBUG_ROOT,
    ID_SYSROOT,
    ID_NO_INLINES,
    ID_LINES,
    ID_NO_LINES,
    ID_DEBUGINFOD,
    ID_FD,
    ID_FOLLOW,
    ID_INTERVAL,
    ID_JSON,
    ID_TOP,
    ID_BY_THREAD,
    ID_BLOCKED,
    ID_LOCKS,
    ID_CALLS,
    ID_SLOWEST,
    ID_BASE,
    ID_BY,
    ID_LIMIT,
    ID_CHECK,
    ID_HTML,
};

#define KINDS "cpu, wall, alloc, lock, io or other"

enum {
    INTERVAL_MAX_MS = 60000,
    TOP_MAX = 100000,
    WRITES = TRACE_EXPORT | TRACE_REPORT,
    NAMES = WRITES | TRACE_INFO | TRACE_DIFF,
    SELECTS = TRACE_EXPORT | TRACE_INFO | TRACE_REPORT | TRACE_DIFF
};

#define WEIGHTS "samples, wall, cpu, blocked, allocated-bytes, allocations or faults" // as take_weight knows them

static const struct cli_argument arguments[] = {
    {"format", "FORMAT", ID_FORMAT, TRACE_EXPORT, "one of those above"},
    {"pid", "PID", ID_PID, TRACE_COLLECT, "the segment of this process"},
    {"fd", "N", ID_FD, TRACE_COLLECT, "the segment that this open descriptor is of"},
    {"output", "FILE", ID_OUT, TRACE_COLLECT, "where to; a file that is there is replaced"},
    {"output", "OUT", ID_OUT, WRITES, "where to; \"-\": standard output (default: beside FILE)"},
    {"follow", NULL, ID_FOLLOW, TRACE_COLLECT, "until the trace ends"},
    {"interval", "MS", ID_INTERVAL, TRACE_COLLECT, "between two looks, in milliseconds (default: 100)"},
    {"kind", "KIND", ID_KIND, TRACE_REPORT, KINDS ": samples of this kind only (default: all)"},
    {"kind", "KIND", ID_KIND, TRACE_EXPORT,
     KINDS
     ": samples of this kind only (default: the recording's main kind: cpu if it has ticks of it, else wall, else "
     "what it has most of; perfetto, chrome and nanoscope: all)"},
    {"kind", "KIND", ID_KIND, TRACE_DIFF, KINDS ": samples of this kind (default: the first recording's main kind)"},
    {"pid", "PID[,PID]", ID_PIDS, SELECTS, "these processes only"},
    {"thread", "TID|NAME", ID_THREAD, SELECTS, "threads of this number or name only; a name may be a pattern"},
    {"between", "FROM,TO", ID_BETWEEN, SELECTS,
     "what lies between these times since the start, as 1.5s,2s or 200ms, (to the end)"},
    {"no-names", NULL, ID_NO_NAMES, TRACE_EXPORT,
     "pprof, otlp: addresses and build-ids without names, for others to look up"},
    {"top", "N", ID_TOP, TRACE_INFO,
     "the N functions that cost most, with their sampling error; rows of the tables below"},
    {"weight", "WHAT", ID_WEIGHT, TRACE_INFO, "for --top: " WEIGHTS " (default: cpu)"},
    {"by-thread", NULL, ID_BY_THREAD, TRACE_INFO,
     "how much of the time each thread ran and was blocked, and where it was at last"},
    {"blocked", NULL, ID_BLOCKED, TRACE_INFO, "what threads waited for, and how long"},
    {"locks", NULL, ID_LOCKS, TRACE_INFO, "waits by lock: which thread waited, which held it, which let go"},
    {"calls", NULL, ID_CALLS, TRACE_INFO, "exact calls, as of qut trace: by function, and who called them"},
    {"slowest", "F[,PERCENT]", ID_SLOWEST, TRACE_INFO,
     "where the time was in the slowest calls of the function F (default: the slowest 1 percent)"},
    {"show-agent", NULL, ID_SHOW_AGENT, SELECTS, "the frames of qut's own agent, too"},
    {"show-interpreters", NULL, ID_SHOW_INTERPRETERS, SELECTS,
     "the frames of interpreters before the functions that they run, too"},
    {"weight", "WHAT", ID_WEIGHT, TRACE_EXPORT,
     WEIGHTS ": what a stack counts for (default: as the kind has it; speedscope by wall: in the order of time)"},
    {"base", "FILE", ID_BASE, TRACE_DIFF, "a recording of side A, once for each; all operands are of side B then"},
    {"by", "WHAT", ID_BY, TRACE_DIFF,
     "share or amount: judge shares of the whole, or amounts of a recording, where both sides did the same work "
     "(default: share)"},
    {"weight", "WHAT", ID_WEIGHT, TRACE_DIFF, WEIGHTS " (default: as the kind has it)"},
    {"limit", "N", ID_LIMIT, TRACE_DIFF, "rows of each table (default: 20; with --json: all)"},
    {"html", "OUT", ID_HTML, TRACE_DIFF, "write a page, too: a flame graph in red and blue, and all rows"},
    {"check", NULL, ID_CHECK, TRACE_DIFF, "exit status 1 if some function is told to have become more"},
    {"no-slices", NULL, ID_NO_SLICES, TRACE_EXPORT, "perfetto: samples only, not when functions were entered and left"},
    {"debug-root", "DIR", ID_DEBUG_ROOT, NAMES, "where separate debug files are (/usr/lib/debug)"},
    {"sysroot", "DIR", ID_SYSROOT, NAMES, "open the files of modules below DIR: a trace of another machine"},
    {"no-inlines", NULL, ID_NO_INLINES, NAMES, "no inlined functions, which need debug information: faster"},
    {"lines", NULL, ID_LINES, TRACE_EXPORT, "source files and lines, where there is debug information"},
    {"lines", NULL, ID_LINES, TRACE_REPORT, "source files and lines, where there is debug information (default)"},
    {"no-lines", NULL, ID_NO_LINES, TRACE_EXPORT, "no source files and lines: faster (default)"},
    {"no-lines", NULL, ID_NO_LINES, TRACE_REPORT, "no source files and lines: faster"},
    {"debuginfod", NULL, ID_DEBUGINFOD, NAMES,
     "ask $DEBUGINFOD_URLS for debug files: it learns which builds you look at"},
    {"json", NULL, ID_JSON, TRACE_INFO, "one JSON document for each FILE"},
    {"json", NULL, ID_JSON, TRACE_DIFF, "one JSON document"},
    {"quiet", NULL, ID_QUIET, WRITES | TRACE_COLLECT | TRACE_DIFF, "no remarks on standard error, errors only"},
    {"help", NULL, CLI_ID_HELP, 0, "this text"},
};

enum { ARGUMENT_COUNT = sizeof arguments / sizeof *arguments };
static_assert((int)ARGUMENT_COUNT <= (int)CLI_ARGUMENTS_MAX, "the table of getopt has room for them");

static int take_format(struct trace_options *options, const char *value)
{
    char wanted[256] = "one of ";
    options->format = export_find(value);
    if (options->format)
        return 0;
    for (unsigned i = 0; export_formats[i]; i++)
        snprintf(wanted + strlen(wanted), sizeof wanted - strlen(wanted), "%s%s", i ? ", " : "",
                 export_formats[i]->name);
    return cli_bad_value("format", value, wanted);
}

static const struct {
    const char *name;
    enum export_weight weight;
} weights[] = {
    {"samples", EXPORT_WEIGHT_SAMPLES}, {"wall", EXPORT_WEIGHT_TIME},
    {"time", EXPORT_WEIGHT_TIME},       {"cpu", EXPORT_WEIGHT_CPU_TIME},
    {"blocked", EXPORT_WEIGHT_BLOCKED}, {"allocated-bytes", EXPORT_WEIGHT_BYTES},
    {"bytes", EXPORT_WEIGHT_BYTES},     {"allocations", EXPORT_WEIGHT_ALLOCATIONS},
    {"faults", EXPORT_WEIGHT_FAULTS},
};
enum { WEIGHT_COUNT = sizeof weights / sizeof *weights };

static int take_weight(struct trace_options *options, const char *value)
{
    for (size_t i = 0; i < WEIGHT_COUNT; i++)
        if (strcmp(weights[i].name, value) == 0) {
            options->weight = options->info.weight = (int)weights[i].weight;
            return 0;
        }
    return cli_bad_value("weight", value, WEIGHTS);
}

static const char *word_of(int id, size_t index)
{
    if (id == ID_FORMAT)
        return export_formats[index] ? export_formats[index]->name : NULL;
    static const char *const bases[] = {"share", "amount"};
    if (id == ID_BY)
        return index < sizeof bases / sizeof *bases ? bases[index] : NULL;
    return id == ID_WEIGHT && index < WEIGHT_COUNT ? weights[index].name : NULL;
}

static int take_number(const char *option, const char *value, long least, long most, const char *what, int *number)
{
    long taken;
    if (!cli_number(value, least, most, &taken))
        return cli_bad_value(option, value, what);
    *number = (int)taken;
    return 0;
}

static int take_kind(struct trace_options *options, const char *value)
{
    options->has_kind = true;
    return analysis_kind_named(value, &options->wanted.kind) ? 0 : cli_bad_value("kind", value, KINDS);
}

static int take_interval(struct trace_options *options, const char *value)
{
    int number = 0;
    int status = take_number("interval", value, 1, INTERVAL_MAX_MS, "a number from 1 to 60000", &number);
    options->interval_ms = (uint32_t)number;
    return status;
}

// "F,PERCENT": names of C++ have commas, too, but do not end in one and a number.
static int take_slowest(struct trace_options *options, const char *value)
{
    static char function[1024];
    const char *comma = strrchr(value, ',');
    char *end = NULL;
    const double percent = comma ? strtod(comma + 1, &end) : 1;
    const bool has_percent = comma && end != comma + 1 && !*end;
    const size_t length = has_percent ? (size_t)(comma - value) : strlen(value);
    if (!length || length >= sizeof function || (has_percent && (percent <= 0 || percent > 100)))
        return cli_bad_value("slowest", value, "a function, or a function and percent above 0");
    memcpy(function, value, length);
    function[length] = 0;
    options->info.slowest = function;
    options->info.slowest_share = has_percent ? percent / 100 : 0.01;
    return 0;
}

static int take_base(struct trace_options *options, const char *value)
{
    if (options->base_count == TRACE_BASES_MAX)
        return cli_bad_value("base", value, "one of at most 64 recordings");
    options->bases[options->base_count++] = value;
    return 0;
}

static int take_by(struct trace_options *options, const char *value)
{
    options->by_amount = strcmp(value, "amount") == 0;
    return options->by_amount || strcmp(value, "share") == 0 ? 0 : cli_bad_value("by", value, "share or amount");
}

static int take_option(void *context, int id, const char *value)
{
    struct trace_options *options = context;
    switch (id) {
    case ID_FORMAT: return take_format(options, value);
    case ID_OUT: options->out = value; return 0;
    case ID_QUIET: options->quiet = true; return 0;
    case ID_KIND: return take_kind(options, value);
    case ID_PIDS: return cli_take_pids(options, value);
    case ID_THREAD: options->wanted.thread = value; return 0;
    case ID_BETWEEN: return cli_take_between(&options->wanted, value);
    case ID_SHOW_AGENT: options->wanted.show_agent = options->info.show_agent = true; return 0;
    case ID_SHOW_INTERPRETERS: options->wanted.show_interpreters = true; return 0;
    case ID_NO_NAMES: options->no_names = true; return 0;
    case ID_WEIGHT: return take_weight(options, value);
    case ID_NO_SLICES: options->no_slices = true; return 0;
    case ID_DEBUG_ROOT: options->debug_root = value; return 0;
    case ID_SYSROOT: options->system_root = value; return 0;
    case ID_NO_INLINES: options->no_inlines = true; return 0;
    case ID_LINES: options->lines = true; return 0;
    case ID_NO_LINES: options->lines = false; return 0;
    case ID_DEBUGINFOD: options->debuginfod = true; return 0;
    case ID_PID: return take_number("pid", value, 1, INT_MAX, "a number from 1 on", &options->pid);
    case ID_FD: return take_number("fd", value, 0, INT_MAX, "the number of a descriptor", &options->fd);
    case ID_FOLLOW: options->follow = true; return 0;
    case ID_INTERVAL: return take_interval(options, value);
    case ID_JSON: options->json = true; return 0;
    case ID_TOP:
        options->info.functions = true;
        return take_number("top", value, 1, TOP_MAX, "a number from 1 to 100000", &options->info.rows);
    case ID_BY_THREAD: options->info.by_thread = true; return 0;
    case ID_BLOCKED: options->info.blocked = true; return 0;
    case ID_CALLS: options->info.calls = true; return 0;
    case ID_SLOWEST: return take_slowest(options, value);
    case ID_LOCKS: options->info.locks = true; return 0;
    case ID_BASE: return take_base(options, value);
    case ID_BY: return take_by(options, value);
    case ID_LIMIT: return take_number("limit", value, 1, TOP_MAX, "a number from 1 to 100000", &options->limit);
    case ID_CHECK: options->check = true; return 0;
    case ID_HTML: options->page = value; return 0;
    default: return -1;
    }
}

int cli_trace_options_refuse(const struct trace_options *options, const char *name, const char *why)
{
    cli_report(stderr, name, "%s", why);
    return cli_usage_error(options->command);
}

int cli_trace_options_some_file(struct trace_options *options)
{
    static char recorded[] = RECORD_FILE;
    static char *files[] = {recorded, NULL};
    if (options->file_count)
        return CLI_GO_ON;
    if (access(recorded, F_OK) != 0)
        return cli_trace_options_refuse(options, options->command,
                                        "needs a FILE: there is no " RECORD_FILE " in this directory, which qut record "
                                        "would have made");
    options->files = files;
    options->file_count = 1;
    if (!options->quiet)
        cli_report(stderr, NULL, "%s of %s", options->command, recorded);
    return CLI_GO_ON;
}

int cli_trace_options_files_together(struct trace_options *options)
{
    options->is_together = true;
    if (options->file_count > 1 && !options->out)
        return cli_trace_options_refuse(options, options->command, "needs -o OUT: one is made of several FILEs");
    return cli_trace_options_some_file(options);
}

int cli_trace_options_parse(struct trace_options *options, enum trace_command set, const char *help, int argc,
                            char **argv)
{
    const struct cli_parser parser = {.command = options->command,
                                      .help = help,
                                      .arguments = arguments,
                                      .argument_count = ARGUMENT_COUNT,
                                      .set = set,
                                      .take = take_option,
                                      .context = options,
                                      .word = word_of};
    int first;
    options->wanted.kind = SELECTION_MAIN;
    options->wanted.to_ns = UINT64_MAX;
    options->fd = options->weight = options->info.weight = -1;
    int status = cli_parse(&parser, argc, argv, &first);
    options->files = argv + first;
    options->file_count = argc - first;
    return status;
}

bool cli_trace_options_labels(char *operand, struct analysis_labels *labels)
{
    const char *unknown = analysis_take_labels(operand, labels);
    if (unknown)
        cli_report(stderr, operand,
                   "there is no such file, and \"%s\" is no label: those are host=, service= and version=", unknown);
    return !unknown;
}
