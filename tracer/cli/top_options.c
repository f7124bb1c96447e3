// SPDX-License-Identifier: Apache-2.0
#include "tracer/cli/top_options.h"

#include <assert.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>

#include "cli/arguments.h"
#include "cli/diagnostics.h"

static const uint64_t ns_per_s = 1000000000;

static const char help[] =
    "Usage: qut top [OPTION]... [--] COMMAND [ARGUMENT]...\n"
    "       qut top [OPTION]... -p PID\n\n"
    "Shows, while it happens, where the threads of a command, or of a process that runs, spend their time: functions\n"
    "with the error of each share, threads, what they wait for, and for whom. It is a recording, made as qut record\n"
    "makes it and looked at while it grows; -o keeps it. Without -o it is in $TMPDIR until the end: some 10 KB a "
    "second\n"
    "for each processor in use. As it grows, looks at it become rarer, so that they take a tenth of a processor at "
    "most.\n\n"
    "Keys: f functions, t threads, w waits, l locks; a: all the time, or the last interval; p: pause; + and -: the\n"
    "interval; arrows, Page Up and Page Down; h: this; q: the end, for COMMAND as well.\n\n"
    "On no terminal, or with --batch or --json, screens are printed one behind the other. COMMAND reads nothing, and\n"
    "what it prints is not shown: --command-output says where it goes. If it fails, the last lines are.\n\n"
    "Example: qut top -p $(pidof redis-server)\n"
    "         qut top --batch 3 --view threads -- make -j4\n";

static const char statuses[] =
    "\nExit status: COMMAND's own, as of qut record; 0 after q and behind the last screen of --batch. With -p: 0 ok; 2 "
    "bad usage, or the process cannot be recorded.\n";

enum {
    ID_PID = 'p',
    ID_FREQUENCY = 'F',
    ID_OUTPUT = 'o',
    ID_INTERVAL = 'd',
    ID_BATCH = 'b',
    ID_ROWS = 'n',
    ID_INJECT = 256,
    ID_WALL,
    ID_SYNC,
    ID_NO_CHILDREN,
    ID_VIEW,
    ID_ALL,
    ID_THREAD,
    ID_JSON,
    ID_COMMAND_OUTPUT,
    ID_NO_INLINES,
    ID_SHOW_AGENT,
};
#define WAITS "lock,io,poll,sleep,load,thread"

enum { ROWS_MAX = 100000, ROWS_OF_BATCH = 20, ROWS_OF_SCREEN = 500 };

static const struct cli_argument arguments[] = {
    {"pid", "PID", ID_PID, 0, "a process that runs"},
    {"inject", NULL, ID_INJECT, 0, "with -p: from inside"},
    {"frequency", "HZ", ID_FREQUENCY, 0, "samples a second of each thread that runs (default: 1000)"},
    {"wall", NULL, ID_WALL, 0, "ticks of real time, also of threads that wait"},
    {"sync", "LIST", ID_SYNC, 0, "what else is sampled of a COMMAND, as of qut record (default: " WAITS ")"},
    {"no-children", NULL, ID_NO_CHILDREN, 0, "COMMAND alone, not what it starts"},
    {"interval", "S", ID_INTERVAL, 0, "seconds from one screen to the next, and that one is of (default: 1)"},
    {"view", "VIEW", ID_VIEW, 0, "functions, threads, waits or locks (default: functions)"},
    {"all", NULL, ID_ALL, 0, "of all the time since the start, not of the last interval"},
    {"thread", "TID|NAME", ID_THREAD, 0, "threads of this number or name only; a name may be a pattern"},
    {"rows", "N", ID_ROWS, 0, "of a table (default: as many as there are; printed: 20)"},
    {"batch", "N", ID_BATCH, 0, "print N screens and end; 0: until the end of what is recorded"},
    {"json", NULL, ID_JSON, 0, "the same as lines of JSON, one a screen, with all tables"},
    {"output", "FILE", ID_OUTPUT, 0, "keep the recording, for qut info, report and export"},
    {"command-output", "FILE", ID_COMMAND_OUTPUT, 0, "where COMMAND's output and errors go (default: nowhere)"},
    {"no-inlines", NULL, ID_NO_INLINES, 0, "no inlined functions, which need debug information: faster"},
    {"show-agent", NULL, ID_SHOW_AGENT, 0, "the frames of qut's own agent, too"},
    {"help", NULL, CLI_ID_HELP, 0, "this text"},
};
enum { ARGUMENT_COUNT = sizeof arguments / sizeof *arguments };
static_assert((int)ARGUMENT_COUNT <= (int)CLI_ARGUMENTS_MAX, "the table of getopt has room for them");

// For qut record, which says itself what is wrong with a value.
static int pass(struct top_options *options, const char *name, const char *value)
{
    if (options->record_count + 2 > TOP_RECORD_ARGUMENTS_MAX)
        return cli_bad_value(name + 2, value ? value : "", "fewer options");
    options->record[options->record_count++] = name;
    if (value)
        options->record[options->record_count++] = value;
    return 0;
}

static int take_pid(struct top_options *options, const char *value)
{
    long pid;
    if (!cli_number(value, 1, INT_MAX, &pid))
        return cli_bad_value("pid", value, "a number from 1 on");
    options->pid = (int)pid;
    return pass(options, "--pid", value);
}

static int take_interval(struct top_options *options, const char *value)
{
    char *end;
    double seconds = strtod(value, &end);
    bool is_number = *value && strspn(value, "0123456789.") == strlen(value) && !*end;
    if (!is_number || seconds < 0.1 || seconds > 3600)
        return cli_bad_value("interval", value, "seconds from 0.1 to 3600");
    options->interval_ns = (uint64_t)(seconds * (double)ns_per_s);
    return 0;
}

static int take_view(struct top_options *options, const char *value)
{
    for (unsigned view = 0; view < TOP_VIEW_COUNT; view++)
        if (strcmp(top_view_name(view), value) == 0) {
            options->shown.view = view;
            return 0;
        }
    return cli_bad_value("view", value, "functions, threads, waits or locks");
}

static int take_number(const char *name, const char *value, long least, int *number)
{
    long taken;
    if (!cli_number(value, least, ROWS_MAX, &taken))
        return cli_bad_value(name, value, least ? "a number from 1 to 100000" : "a number from 0 to 100000");
    *number = (int)taken;
    return 0;
}

static int take_option(void *context, int id, const char *value)
{
    struct top_options *options = context;
    switch (id) {
    case ID_PID: return take_pid(options, value);
    case ID_INJECT: return pass(options, "--inject", NULL);
    case ID_FREQUENCY: return pass(options, "--frequency", value);
    case ID_WALL: return pass(options, "--wall", NULL);
    case ID_SYNC: options->has_sync = true; return pass(options, "--sync", value);
    case ID_NO_CHILDREN: return pass(options, "--no-children", NULL);
    case ID_INTERVAL: return take_interval(options, value);
    case ID_VIEW: return take_view(options, value);
    case ID_ALL: options->shown.of_all = true; return 0;
    case ID_THREAD: options->shown.thread = value; return 0;
    case ID_ROWS: return take_number("rows", value, 1, &options->shown.rows);
    case ID_BATCH: options->is_batch = true; return take_number("batch", value, 0, &options->batch);
    case ID_JSON: options->json = options->is_batch = true; return 0;
    case ID_OUTPUT: options->path = value; return 0;
    case ID_COMMAND_OUTPUT: options->command_output = value; return 0;
    case ID_NO_INLINES: options->shown.no_inlines = true; return 0;
    case ID_SHOW_AGENT: options->shown.show_agent = true; return 0;
    default: return -1;
    }
}

static const char *word_of(int id, size_t index)
{
    return id == ID_VIEW && index < TOP_VIEW_COUNT ? top_view_name((enum top_view)index) : NULL;
}

static int refuse(const char *name, const char *why)
{
    cli_report(stderr, name, "%s", why);
    return cli_usage_error("top");
}

int cli_top_options_parse(struct top_options *options, int argc, char **argv)
{
    const struct cli_parser parser = {.command = "top",
                                      .help = help,
                                      .statuses = statuses,
                                      .stop_at_operand = true,
                                      .arguments = arguments,
                                      .argument_count = ARGUMENT_COUNT,
                                      .take = take_option,
                                      .context = options,
                                      .word = word_of};
    int first;
    *options = (struct top_options){.interval_ns = ns_per_s};
    int status = cli_parse(&parser, argc, argv, &first);
    if (status != CLI_GO_ON)
        return status;
    options->command = first < argc ? argv + first : NULL;
    if (!options->pid && !options->command)
        return refuse("top", "needs a COMMAND, or -p PID");
    if (options->pid && options->command)
        return refuse(options->command[0], "a COMMAND and -p PID: not both");
    if (options->pid && options->command_output)
        return refuse("--command-output", "needs a COMMAND");
    if (options->path && strcmp(options->path, "-") == 0)
        return refuse("-o -", "is no file, which a trace is written to");
    if (options->command && !options->has_sync && pass(options, "--sync", WAITS) != 0)
        return CLI_BAD;
    options->shown.window_ns = options->interval_ns;
    if (!options->shown.rows)
        options->shown.rows = options->is_batch ? ROWS_OF_BATCH : ROWS_OF_SCREEN;
    return CLI_GO_ON;
}
