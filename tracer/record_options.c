// SPDX-License-Identifier: Apache-2.0
#include "tracer/record_options.h"

#include <assert.h>
#include <inttypes.h>
#include <limits.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>

#include <qut/sample.h>

#include "cli/arguments.h"
#include "cli/report.h"

enum {
    ID_OUT = 'o',
    ID_FREQUENCY = 'F',
    ID_PID = 'p',
    ID_QUIET = 'q',
    ID_CPU = 256,
    ID_WALL,
    ID_NO_TICKS,
    ID_GROUP,
    ID_SYNC,
    ID_SYNC_INTERVAL,
    ID_BLOCKED_LEAST,
    ID_METRICS,
    ID_FAULTS,
    ID_DURATION,
    ID_NO_CHILDREN,
    ID_WAIT_ALL,
    ID_BUFFER,
    ID_KEEP_NEWEST,
    ID_INJECT,
    ID_TID,
    ID_SIGNAL,
    ID_CACHE,
    ID_NO_CACHE,
    ID_JSON,
};

enum { NS_PER_MS = 1000000, HZ_MAX = 50000 };
static const uint64_t ns_per_s = 1000000000;

static const char help[] =
    "Usage: qut record [OPTION]... [--] COMMAND [ARGUMENT]...\n"
    "       qut record [OPTION]... -p PID\n\n"
    "Samples where the threads of a command, or of a process that runs, spend their time, and writes a trace, which\n"
    "qut info, qut report and qut export read. Needs no privileges, no frame pointers, and nothing to be rebuilt.\n\n"
    "COMMAND is started with an agent in it (LD_PRELOAD), and so are its children. Each thread is interrupted once in\n"
    "a while of the processor time that it uses: threads that wait cost nothing, and no system call is cut short.\n"
    "With --sync, calls that allocate, lock or wait are sampled as well. A command that nothing can be preloaded into\n"
    "(static, 32-bit, another C library) is sampled from outside, as with -p: its first thread's children are not.\n\n"
    "-p PID stops one thread at a time for some microseconds, and changes nothing in the process. With --inject the\n"
    "agent is loaded into it, and taken out at the end.\n\n"
    "The recording ends with COMMAND, with PID, or after --duration; then COMMAND runs on, and is waited for. Ctrl-C\n"
    "reaches COMMAND as well, which is waited for; a second Ctrl-C leaves it alone. SIGTERM and SIGHUP are passed on.\n"
    "The file is finished in all cases. A file that is there already is kept as FILE.1, FILE.2, ...\n\n"
    "Example: qut record -F 1000 -- sort -n numbers.txt\n";

static const char statuses[] =
    "\nExit status: COMMAND's own (128 + N where signal N ended it); 1 where that is 0 and the recording is "
    "incomplete;\n"
    "127 COMMAND was not found, 126 it cannot be started; 128 + N where signal N made us leave it; 2 bad usage.\n"
    "With -p: 0 ok; 1 the recording is incomplete; 2 bad usage, or the process cannot be recorded.\n";

static const struct cli_argument arguments[] = {
    {"output", "FILE", ID_OUT, 0, "where to (default: qut.qtrace)"},
    {"frequency", "HZ", ID_FREQUENCY, 0, "samples a second of each thread that runs (default: 1000)"},
    {"cpu", NULL, ID_CPU, 0, "ticks of the processor time that threads use (default)"},
    {"wall", NULL, ID_WALL, 0, "ticks of real time, also of threads that wait"},
    {"no-ticks", NULL, ID_NO_TICKS, 0, "no ticks: what --sync says only"},
    {"group", "NAMES=HZ", ID_GROUP, 0, "threads whose name fits (\"worker-*\"; main: the first thread) have this pace"},
    {"sync", "LIST", ID_SYNC, 0,
     "what else is sampled: alloc, lock, io, poll, sleep, load, thread, map; all; none (default: load,thread)"},
    {"sync-interval", "MS", ID_SYNC_INTERVAL, 0,
     "of one thread's such samples; others are counted only; 0: all are stored (default: 10)"},
    {"blocked-least", "MS", ID_BLOCKED_LEAST, 0, "waits from this length on are always stored (default: 1)"},
    {"metrics", "LIST", ID_METRICS, 0, "faults, switches, allocations; all; none (default: all that is measured)"},
    {"faults", "N", ID_FAULTS, 0, "one more sample for each N page faults of a thread"},
    {"duration", "S", ID_DURATION, 0, "seconds, then no more samples"},
    {"no-children", NULL, ID_NO_CHILDREN, 0, "COMMAND alone, not what it starts"},
    {"wait-all", NULL, ID_WAIT_ALL, 0, "record on until all that COMMAND started has ended as well"},
    {"buffer", "SIZE", ID_BUFFER, 0, "of each process, in memory: bytes, or with K, M or G (default: 16M)"},
    {"keep-newest", NULL, ID_KEEP_NEWEST, 0, "where the buffer is full, new samples take the place of old ones"},
    {"pid", "PID", ID_PID, 0, "a process that runs"},
    {"tid", "TID", ID_TID, 0, "with -p: this thread only"},
    {"inject", NULL, ID_INJECT, 0, "with -p: from inside"},
    {"signal", "N", ID_SIGNAL, 0, "the signal of the ticks (default: SIGTRAP, which is cheapest; 16 under a debugger)"},
    {"cache", "DIR", ID_CACHE, 0, "where tables are kept (default: $QUT_CACHE, else ~/.cache/qut)"},
    {"no-cache", NULL, ID_NO_CACHE, 0, "tables are made anew, and kept nowhere"},
    {"json", "FILE", ID_JSON, 0, "the summary as JSON, too; also with --quiet"},
    {"quiet", NULL, ID_QUIET, 0, "no status line, no summary: errors only"},
    {"help", NULL, CLI_ID_HELP, 0, "this text"},
};
static_assert((int)(sizeof arguments / sizeof *arguments) <= (int)CLI_ARGUMENTS_MAX, "the table of getopt has room");

struct name {
    const char *text;
    uint32_t bits;
};

static const struct name sync_names[] = {{"alloc", AGENT_SYNC_ALLOCATE},
                                         {"lock", AGENT_SYNC_LOCK},
                                         {"io", AGENT_SYNC_IO},
                                         {"poll", AGENT_SYNC_POLL},
                                         {"sleep", AGENT_SYNC_SLEEP},
                                         {"load", AGENT_SYNC_LOAD},
                                         {"thread", AGENT_SYNC_THREAD},
                                         {"map", AGENT_SYNC_MAP},
                                         {"all", AGENT_SYNC_ALL},
                                         {"none", 0},
                                         {NULL, 0}};

static const struct name metric_names[] = {
    {"faults", 1u << QUT_METRIC_MINOR_FAULTS | 1u << QUT_METRIC_MAJOR_FAULTS},
    {"switches", 1u << QUT_METRIC_VOLUNTARY_SWITCHES | 1u << QUT_METRIC_INVOLUNTARY_SWITCHES},
    {"allocations", 1u << QUT_METRIC_ALLOCATIONS | 1u << QUT_METRIC_ALLOCATED_BYTES},
    {"all", 0x3f},
    {"none", 0},
    {NULL, 0}};

static int take_list(const struct name *names, const char *value, uint32_t *bits)
{
    *bits = 0;
    for (const char *from = value;; from++) {
        size_t length = strcspn(from, ",");
        const struct name *name = names;
        while (name->text && (strlen(name->text) != length || strncmp(name->text, from, length) != 0))
            name++;
        if (!name->text)
            return -1;
        *bits |= name->bits;
        from += length;
        if (!*from)
            return 0;
    }
}

// A number that may have a fraction, from `least` to `most`.
static bool take_real(const char *text, double least, double most, double *number)
{
    char *end;
    if (!*text || strspn(text, "0123456789.") != strlen(text)) // no hexadecimal ones, no infinity
        return false;
    *number = strtod(text, &end);
    return *end == 0 && *number >= least && *number <= most;
}

static bool take_period(const char *text, uint64_t *period_ns)
{
    double hz;
    if (strcmp(text, "0") == 0) {
        *period_ns = 0;
        return true;
    }
    if (!take_real(text, 0.001, HZ_MAX, &hz))
        return false;
    *period_ns = (uint64_t)((double)ns_per_s / hz);
    return true;
}

static int take_group(struct agent_settings *settings, const char *value)
{
    const char *equals = strrchr(value, '=');
    size_t length = equals ? (size_t)(equals - value) : 0;
    if (settings->group_count == AGENT_GROUPS_MAX)
        return cli_bad_value("group", value, "there are 16 already");
    struct agent_group *group = &settings->groups[settings->group_count];
    if (!length || length >= sizeof group->pattern || strcspn(value, ";:\n") < length ||
        !take_period(equals + 1, &group->period_ns))
        return cli_bad_value("group", value, "NAMES=HZ: up to 31 characters but ';' and ':', and 0 or 0.001 to 50000");
    memcpy(group->pattern, value, length);
    group->pattern[length] = 0;
    settings->group_count++;
    return 0;
}

static int take_size(struct agent_settings *settings, const char *value)
{
    static const char units[] = "KMG";
    const uint64_t least = 1 << 20, most = (uint64_t)16 << 30;
    char *end;
    uint64_t size = strtoull(value, &end, 10);
    const char *unit = *end ? strchr(units, *end) : NULL;
    unsigned shift = unit ? 10 * (unsigned)(unit - units + 1) : 0;
    if (value[0] < '0' || value[0] > '9' || (*end && (!unit || end[1])) || size > most >> shift ||
        size << shift < least)
        return cli_bad_value("buffer", value, "a size from 1M to 16G");
    settings->segment_bytes = size << shift;
    return 0;
}

static int take_ms(const char *option, const char *value, uint64_t *ns)
{
    double ms;
    if (!take_real(value, 0, 3600000, &ms))
        return cli_bad_value(option, value, "milliseconds, 0 to 3600000");
    *ns = (uint64_t)(ms * NS_PER_MS);
    return 0;
}

static int take_int(const char *option, const char *value, int most, int *number)
{
    long taken;
    if (!cli_number(value, 1, most, &taken))
        return cli_bad_value(option, value, "a number from 1 on");
    *number = (int)taken;
    return 0;
}

static int take_signal(struct agent_settings *settings, const char *value)
{
    int number = 0;
    if (take_int("signal", value, 31, &number) != 0 || number == SIGKILL || number == SIGSTOP)
        return cli_bad_value("signal", value, "one from 1 to 31 that can be handled");
    settings->signal_number = number;
    return 0;
}

static int take_duration(struct record_command_options *options, const char *value)
{
    double seconds;
    if (!take_real(value, 0.001, 31536000, &seconds))
        return cli_bad_value("duration", value, "seconds, more than 0");
    options->duration_ns = (uint64_t)(seconds * (double)ns_per_s);
    return 0;
}

static int take_rest(struct record_command_options *options, int id, const char *value)
{
    struct agent_settings *settings = &options->settings;
    int number = 0, status;
    switch (id) {
    case ID_DURATION: return take_duration(options, value);
    case ID_NO_CHILDREN: settings->follow = false; return 0;
    case ID_WAIT_ALL: options->wait_for_all = true; return 0;
    case ID_BUFFER: return take_size(settings, value);
    case ID_KEEP_NEWEST: settings->keep_newest = true; return 0;
    case ID_PID: return take_int("pid", value, INT_MAX, &options->pid);
    case ID_TID: return take_int("tid", value, INT_MAX, &options->tid);
    case ID_INJECT: options->inject = true; return 0;
    case ID_SIGNAL: return take_signal(settings, value);
    case ID_CACHE: options->cache_directory = value; return 0;
    case ID_NO_CACHE: options->no_cache = true; return 0;
    case ID_JSON: options->json_path = value; return 0;
    case ID_QUIET: options->quiet = true; return 0;
    case ID_FAULTS:
        status = take_int("faults", value, INT_MAX, &number);
        settings->fault_period = (uint64_t)number;
        return status;
    default: return -1;
    }
}

static int take_option(void *context, int id, const char *value)
{
    struct record_command_options *options = context;
    struct agent_settings *settings = &options->settings;
    switch (id) {
    case ID_OUT: options->path = value; return 0;
    case ID_FREQUENCY:
        return take_period(value, &settings->period_ns) && settings->period_ns
                   ? 0
                   : cli_bad_value("frequency", value, "samples a second, 0.001 to 50000");
    case ID_CPU: settings->trigger = QUT_TRIGGER_BEST; return 0;
    case ID_WALL: settings->trigger = QUT_TRIGGER_WALL; return 0;
    case ID_NO_TICKS: settings->trigger = QUT_TRIGGER_NONE; return 0;
    case ID_GROUP: return take_group(settings, value);
    case ID_SYNC:
        return take_list(sync_names, value, &settings->sync) == 0
                   ? 0
                   : cli_bad_value("sync", value,
                                   "a list of alloc, lock, io, poll, sleep, load, thread, map, all, none");
    case ID_SYNC_INTERVAL: return take_ms("sync-interval", value, &settings->sync_interval_ns);
    case ID_BLOCKED_LEAST: return take_ms("blocked-least", value, &settings->blocked_least_ns);
    case ID_METRICS:
        return take_list(metric_names, value, &settings->metric_mask) == 0
                   ? 0
                   : cli_bad_value("metrics", value, "a list of faults, switches, allocations, all, none");
    default: return take_rest(options, id, value);
    }
}

static int refuse(const char *name, const char *why)
{
    cli_report(stderr, name, "%s", why);
    return cli_usage_error("record");
}

static int check(const struct record_command_options *options)
{
    if (!options->pid && !options->command)
        return refuse("record", "needs a COMMAND, or -p PID");
    if (options->pid && options->command)
        return refuse(options->command[0], "a COMMAND and -p PID: not both");
    if (!options->pid && options->tid)
        return refuse("--tid", "needs -p PID");
    if (!options->pid && options->inject)
        return refuse("--inject", "needs -p PID");
    if (options->inject && options->tid)
        return refuse("--tid", "not with --inject, which samples all threads");
    if (options->inject && options->settings.trigger == QUT_TRIGGER_WALL)
        return refuse("--wall", "not with --inject: calls that wait would be cut short; -p PID --wall alone does not");
    if (options->pid && options->wait_for_all)
        return refuse("--wait-all", "needs a COMMAND");
    if (options->no_cache && options->cache_directory)
        return refuse("--no-cache", "not with --cache");
    if (strcmp(options->path, "-") == 0)
        return refuse("-o -", "is no file, which a trace is written to");
    if (options->json_path && strcmp(options->json_path, "-") == 0)
        return refuse("--json -", "needs a FILE: standard output is the command's");
    return CLI_GO_ON;
}

int record_options_parse(struct record_command_options *options, int argc, char **argv)
{
    const uint32_t metrics_not_said = UINT32_MAX;
    *options = (struct record_command_options){.path = "qut.qtrace",
                                               .settings = {.trigger = QUT_TRIGGER_BEST,
                                                            .period_ns = ns_per_s / 1000,
                                                            .sync_interval_ns = 10 * NS_PER_MS,
                                                            .blocked_least_ns = NS_PER_MS,
                                                            .segment_bytes = 16 << 20,
                                                            .sync = AGENT_SYNC_LOAD | AGENT_SYNC_THREAD,
                                                            .metric_mask = metrics_not_said,
                                                            .follow = true}};
    const struct cli_parser parser = {.command = "record",
                                      .help = help,
                                      .statuses = statuses,
                                      .stop_at_operand = true,
                                      .arguments = arguments,
                                      .argument_count = sizeof arguments / sizeof *arguments,
                                      .take = take_option,
                                      .context = options};
    int first;
    int status = cli_parse(&parser, argc, argv, &first);
    if (status != CLI_GO_ON)
        return status;
    struct agent_settings *settings = &options->settings;
    if (settings->metric_mask == metrics_not_said)
        settings->metric_mask = settings->sync & AGENT_SYNC_ALLOCATE ? 0x3f : 0xf;
    if (!settings->sync_interval_ns)
        settings->sync_interval_ns = 1; // all of them
    options->command = first < argc ? argv + first : NULL;
    return check(options);
}
