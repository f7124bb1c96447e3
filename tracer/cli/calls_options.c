// SPDX-License-Identifier: Apache-2.0
#include "tracer/cli/calls_options.h"

#include <assert.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>

#include "cli/arguments.h"
#include "cli/diagnostics.h"
#include "formats/qut_calls.h"

static const char help[] =
    "Usage: qut trace -f PATTERN... [OPTION]... [--] COMMAND [ARGUMENT]...\n"
    "       qut trace -f PATTERN... [OPTION]... -p PID\n\n"
    "Records every call of the functions that PATTERNs name: when it was entered, when it was left, and how. Nothing\n"
    "is rebuilt: the first bytes of each function become a jump, while the threads of the process stand still for a\n"
    "moment, and are put back at the end. Exceptions, longjmp, coroutines and signal handlers pass through as ever.\n"
    "qut info --calls, qut report and qut export read the trace.\n\n"
    "PATTERN is [MODULE!]NAME, both as shells match files (* ? [a-z]). MODULE is the name of a file, with or without\n"
    "what begins at .so; all files are meant without it. NAME is matched with names as they are in the file, and as\n"
    "people read them: -f 'libfoo!*' has all functions of a library, -f 'Parser::*' those of a class; -x takes "
    "away.\n\n"
    "COMMAND is started with an agent in it (LD_PRELOAD). Into a process that runs (-p) it is loaded; its functions\n"
    "are traced from then until Ctrl-C, --duration, or its end, and it goes on.\n\n"
    "Example: qut trace -f 'redis-server!*' -x '*dictGet*' -- redis-server\n"
    "         qut info --calls\n";

static const char statuses[] =
    "\nExit status: COMMAND's own (128 + N where signal N ended it); 1 where that is 0 and the trace is incomplete, "
    "or\n"
    "a PATTERN fitted no function of any file that was loaded, which is known at the end; 127 COMMAND was not found,\n"
    "126 it cannot be started; 128 + N where signal N made us leave it; 2 bad usage, or a process that cannot be\n"
    "traced.\n"
    "With -p: 0 ok; 1 as above, or something could not be put back; 2 as above.\n"
    "With --list: 0 ok; 1 a file could not be read; 2 bad usage, or a PATTERN that no function fits.\n";

enum {
    ID_FUNCTION = 'f',
    ID_EXCLUDE = 'x',
    ID_PID = 'p',
    ID_OUTPUT = 'o',
    ID_QUIET = 'q',
    ID_DURATION = 256,
    ID_COUNT_ONLY,
    ID_BUDGET,
    ID_THIN,
    ID_MIN_DURATION,
    ID_CALLER,
    ID_DEPTH,
    ID_NO_RUNNING,
    ID_TRAPS,
    ID_LIST,
    ID_SAMPLES,
    ID_BUFFER,
    ID_WAIT,
    ID_NO_CHILDREN,
    ID_CACHE,
    ID_NO_CACHE,
};

static const struct cli_argument arguments[] = {
    {"function", "PATTERN", ID_FUNCTION, 0, "these functions; may be said again"},
    {"exclude", "PATTERN", ID_EXCLUDE, 0, "but not these; may be said again"},
    {"pid", "PID", ID_PID, 0, "a process that runs"},
    {"output", "FILE", ID_OUTPUT, 0, "where to (default: " RECORD_FILE ")"},
    {"duration", "S", ID_DURATION, 0, "seconds, then all is put back"},
    {"list", NULL, ID_LIST, 0, "which functions would be traced and how, which are refused and why; starts nothing"},
    {"count-only", NULL, ID_COUNT_ONLY, 0, "how often each is called, exactly, and no times"},
    {"budget", "N", ID_BUDGET, 0, "a function that is called more than N times a second is counted only, from then on"},
    {"thin", "N", ID_THIN, 0,
     "of a function that is called more than N times a second one of 2, 4, 8, ... calls is recorded from then on, so "
     "that about N are; all are counted"},
    {"min-duration", "[PATTERN=]MS", ID_MIN_DURATION, 0,
     "keep calls of at least this length, and those around them; shorter ones are counted only. With a PATTERN, of its "
     "functions; may be said again, the last that fits a function counts"},
    {"caller", "PATTERN", ID_CALLER, 0,
     "only while a call of these functions is open on the thread; they are traced as well; may be said again"},
    {"depth", "N", ID_DEPTH, 0, "keep at most N calls that lie in each other; deeper ones are counted only"},
    {"no-running", NULL, ID_NO_RUNNING, 0, "with -p: calls that already run when tracing begins are left out"},
    {"traps", NULL, ID_TRAPS, 0,
     "of a COMMAND: functions that have room for a single byte as well, by a trap, which costs microseconds a call"},
    {"samples", "HZ", ID_SAMPLES, 0, "samples beside the calls, as qut record takes them"},
    {"buffer", "SIZE", ID_BUFFER, 0,
     "of each thread, in memory: a power of two, with K or M (default: 4M, which a thread can fill in 2 ms)"},
    {"wait", NULL, ID_WAIT, 0, "threads whose buffer is full wait for room: nothing is lost, and they are slower"},
    {"no-children", NULL, ID_NO_CHILDREN, 0, "COMMAND alone, not what it starts"},
    {"cache", "DIR", ID_CACHE, 0, "where tables and plans are kept (default: $QUT_CACHE, else ~/.cache/qut/tables)"},
    {"no-cache", NULL, ID_NO_CACHE, 0, "they are made anew, and kept nowhere"},
    {"quiet", NULL, ID_QUIET, 0, "no status line, no summary: errors only"},
    {"help", NULL, CLI_ID_HELP, 0, "this text"},
};
enum { ARGUMENT_COUNT = sizeof arguments / sizeof *arguments };
static_assert((int)ARGUMENT_COUNT <= (int)CLI_ARGUMENTS_MAX, "the table of getopt has room for them");

int cli_calls_pass(struct calls_options *options, const char *name, const char *value)
{
    if (options->record_count + 2 > CALLS_RECORD_ARGUMENTS_MAX)
        return cli_bad_value(name + 2, value ? value : "", "fewer options");
    options->record[options->record_count++] = name;
    if (value)
        options->record[options->record_count++] = value;
    return 0;
}

// In the order in which they are said; one that takes away has its mark.
static int take_pattern(struct calls_options *options, const char *name, const char *value)
{
    const bool is_excluded = strcmp(name, "exclude") == 0, is_caller = strcmp(name, "caller") == 0;
    if (!*value || strlen(value) > TRACED_PATTERN_BYTES)
        return cli_bad_value(name, value, "[MODULE!]NAME");
    if (options->traced.pattern_count == CALLS_PATTERNS_MAX)
        return cli_bad_value(name, value, "at most 256 of them");
    options->traced.is_excluded[options->traced.pattern_count] = is_excluded;
    options->traced.is_caller[options->traced.pattern_count] = is_caller;
    options->traced.has_callers |= is_caller;
    options->patterns[options->traced.pattern_count++] = value;
    return 0;
}

static int take_pid(struct calls_options *options, const char *value)
{
    long pid;
    if (!cli_number(value, 1, INT_MAX, &pid))
        return cli_bad_value("pid", value, "a number from 1 on");
    options->pid = (int)pid;
    return cli_calls_pass(options, "--pid", value);
}

static int take_rate(const char *name, const char *value, uint64_t *hz)
{
    long number;
    if (!cli_number(value, 1, 1000000000, &number))
        return cli_bad_value(name, value, "calls a second, from 1 to 1000000000");
    *hz = (uint64_t)number;
    return 0;
}

static int take_depth(struct calls_options *options, const char *value)
{
    long number;
    if (!cli_number(value, 1, 1000000, &number))
        return cli_bad_value("depth", value, "a number from 1 to 1000000");
    options->traced.depth = (uint32_t)number;
    return 0;
}

// [PATTERN=]MS. Names may have a '=' as well (operator==): the last one divides.
static int take_least(struct calls_options *options, const char *value)
{
    enum { MS_MAX = 3600000 };
    const char *mark = strrchr(value, '='), *number = mark ? mark + 1 : value;
    const size_t pattern_bytes = mark ? (size_t)(mark - value) : 0;
    char *end, wanted[128];
    const double ms = strtod(number, &end);
    if (mark && (*value == '!' || *value == '=' || mark[-1] == '!' || pattern_bytes > TRACED_PATTERN_BYTES))
        return cli_bad_value("min-duration", value, "[MODULE!]NAME=MILLISECONDS, or MILLISECONDS");
    if (!*number || strspn(number, "0123456789.") != strlen(number) || *end || ms > MS_MAX || (ms <= 0 && !mark)) {
        snprintf(wanted, sizeof wanted, "at column %zu: milliseconds, %s and at most %d", (size_t)(number - value) + 1,
                 mark ? "from 0" : "more than 0", (int)MS_MAX);
        return cli_bad_value("min-duration", value, wanted);
    }
    struct traced_options *traced = &options->traced;
    if (!mark) {
        traced->least_ns = (uint64_t)(ms * 1e6);
        return 0;
    }
    if (traced->least_count == TRACED_LEASTS_MAX)
        return cli_bad_value("min-duration", value, "at most 64 of them");
    traced->leasts[traced->least_count++] = (struct traced_least){value, pattern_bytes, (uint64_t)(ms * 1e6)};
    return 0;
}

static int take_buffer(struct calls_options *options, const char *value)
{
    char *end;
    const uint64_t size = strtoull(value, &end, 10);
    const unsigned shift = *end == 'K' ? 10 : *end == 'M' ? 20 : 0;
    options->ring_bytes = size << shift;
    if (value[0] < '0' || value[0] > '9' || end[shift ? 1 : 0] || size > (uint64_t)QUT_CALLS_RING_BYTES_MAX >> shift ||
        options->ring_bytes < (uint64_t)QUT_CALLS_RING_BYTES_MIN || (options->ring_bytes & (options->ring_bytes - 1)))
        return cli_bad_value("buffer", value, "a power of two from 4K to 256M");
    return 0;
}

static int take_option(void *context, int id, const char *value)
{
    struct calls_options *options = context;
    switch (id) {
    case ID_FUNCTION: return take_pattern(options, "function", value);
    case ID_EXCLUDE: return take_pattern(options, "exclude", value);
    case ID_PID: return take_pid(options, value);
    case ID_OUTPUT: return cli_calls_pass(options, "--output", value);
    case ID_DURATION: return cli_calls_pass(options, "--duration", value);
    case ID_LIST: options->list = true; return 0;
    case ID_COUNT_ONLY: options->traced.count_only = true; return 0;
    case ID_BUDGET: return take_rate("budget", value, &options->traced.budget_hz);
    case ID_THIN: return take_rate("thin", value, &options->traced.thin_hz);
    case ID_CALLER: return take_pattern(options, "caller", value);
    case ID_DEPTH: return take_depth(options, value);
    case ID_MIN_DURATION: return take_least(options, value);
    case ID_NO_RUNNING: options->traced.without_running = true; return 0;
    case ID_TRAPS: options->traced.traps = true; return 0;
    case ID_SAMPLES: options->has_ticks = true; return cli_calls_pass(options, "--frequency", value);
    case ID_WAIT: options->traced.waits_for_room = true; return 0;
    case ID_BUFFER: return take_buffer(options, value);
    case ID_NO_CHILDREN: return cli_calls_pass(options, "--no-children", NULL);
    case ID_CACHE: options->cache_directory = value; return cli_calls_pass(options, "--cache", value);
    case ID_NO_CACHE: options->no_cache = true; return cli_calls_pass(options, "--no-cache", NULL);
    case ID_QUIET: return cli_calls_pass(options, "--quiet", NULL);
    default: return -1;
    }
}

static int refuse(const char *name, const char *why)
{
    cli_report(stderr, name, "%s", why);
    return cli_usage_error("trace");
}

static int check(const struct calls_options *options)
{
    bool is_any = false;
    for (size_t i = 0; i < options->traced.pattern_count; i++)
        is_any |= !options->traced.is_excluded[i] && !options->traced.is_caller[i];
    if (!is_any)
        return refuse("trace", "needs a PATTERN (-f) of the functions to trace");
    if (!options->pid && !options->command)
        return refuse("trace", "needs a COMMAND, or -p PID");
    if (options->pid && options->command)
        return refuse(options->command[0], "a COMMAND and -p PID: not both");
    if (options->traced.count_only && options->traced.budget_hz)
        return refuse("--budget", "not with --count-only, which counts all of them");
    if (options->traced.count_only && options->traced.thin_hz)
        return refuse("--thin", "not with --count-only, which records no calls");
    if (options->traced.budget_hz && options->traced.thin_hz)
        return refuse("--thin", "not with --budget: a function that is called too often is thinned, or counted only");
    if (options->traced.depth && options->traced.thin_hz)
        return refuse("--thin", "not with --depth: of calls that are not recorded it is not known that they are open");
    if (options->traced.count_only && (options->traced.least_ns || options->traced.least_count))
        return refuse("--min-duration", "not with --count-only, which knows no times");
    if (options->traced.count_only && options->traced.has_callers)
        return refuse("--caller", "not with --count-only, which knows no calls that are open");
    if (options->traced.count_only && options->traced.depth)
        return refuse("--depth", "not with --count-only, which knows no calls that are open");
    if (options->traced.without_running && !options->pid)
        return refuse("--no-running", "needs -p PID");
    if (options->traced.traps && options->pid && !options->list)
        return refuse("--traps",
                      "needs a COMMAND: a process that runs may block SIGTRAP, which nobody can keep from it");
    return CLI_GO_ON;
}

int cli_calls_options_parse(struct calls_options *options, int argc, char **argv)
{
    const struct cli_parser parser = {.command = "trace",
                                      .help = help,
                                      .statuses = statuses,
                                      .stop_at_operand = true,
                                      .arguments = arguments,
                                      .argument_count = ARGUMENT_COUNT,
                                      .take = take_option,
                                      .context = options};
    int first;
    *options = (struct calls_options){.ring_bytes = CALLS_RING_BYTES};
    int status = cli_parse(&parser, argc, argv, &first);
    if (status != CLI_GO_ON)
        return status;
    options->traced.patterns = options->patterns;
    options->command = first < argc ? argv + first : NULL;
    status = check(options);
    if (status != CLI_GO_ON)
        return status;
    if (options->pid && cli_calls_pass(options, "--inject", NULL) != 0)
        return CLI_BAD;
    // What is loaded is asked after all the same.
    if (!options->has_ticks && cli_calls_pass(options, "--no-ticks", NULL) != 0)
        return CLI_BAD;
    return CLI_GO_ON;
}
