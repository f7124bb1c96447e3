// SPDX-License-Identifier: Apache-2.0
#include "tracer/cli/record_options.h"

#include <assert.h>
#include <inttypes.h>
#include <limits.h>
#include <signal.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#include <qut/sample.h>

#include "cli/arguments.h"
#include "cli/diagnostics.h"

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

static bool is_list(const struct name *names, const char *value, uint32_t *bits)
{
    *bits = 0;
    for (const char *from = value;; from++) {
        size_t length = strcspn(from, ",");
        const struct name *name = names;
        while (name->text && (strlen(name->text) != length || strncmp(name->text, from, length) != 0))
            name++;
        if (!name->text)
            return false;
        *bits |= name->bits;
        from += length;
        if (!*from)
            return true;
    }
}

// A number that may have a fraction, from `least` to `most`.
static bool is_real(const char *text, double least, double most, double *number)
{
    char *end;
    if (!*text || strspn(text, "0123456789.") != strlen(text)) // no hexadecimal ones, no infinity
        return false;
    *number = strtod(text, &end);
    return *end == 0 && *number >= least && *number <= most;
}

static bool is_period(const char *text, uint64_t *period_ns)
{
    double hz;
    if (strcmp(text, "0") == 0) {
        *period_ns = 0;
        return true;
    }
    if (!is_real(text, 0.001, HZ_MAX, &hz))
        return false;
    *period_ns = (uint64_t)((double)ns_per_s / hz);
    return true;
}

// ---- What options take: each puts a value (of an option without one: its name) into its field, and returns NULL, or
// what is wanted instead.

static const char *take_text(const char *value, void *field)
{
    *(const char **)field = value;
    return NULL;
}

static const char *take_true(const char *name, void *field)
{
    (void)name;
    *(bool *)field = true;
    return NULL;
}

static const char *take_false(const char *name, void *field)
{
    (void)name;
    *(bool *)field = false;
    return NULL;
}

static const char *take_url(const char *value, void *field)
{
    struct record_servers *servers = field;
    if (servers->url_count == ELSEWHERE_URLS_MAX)
        return "one of at most 16 servers";
    servers->urls[servers->url_count++] = value;
    return NULL;
}

static const char *take_trigger(const char *name, void *field)
{
    *(uint32_t *)field = strcmp(name, "cpu") == 0    ? QUT_TRIGGER_BEST
                         : strcmp(name, "wall") == 0 ? QUT_TRIGGER_WALL
                                                     : QUT_TRIGGER_NONE;
    return NULL;
}

static const char *take_frequency(const char *value, void *field)
{
    uint64_t *period_ns = field;
    return is_period(value, period_ns) && *period_ns ? NULL : "samples a second, 0.001 to 50000";
}

static const char *take_group(const char *value, void *field)
{
    struct agent_settings *settings = field;
    const char *equals = strrchr(value, '=');
    size_t length = equals ? (size_t)(equals - value) : 0;
    if (settings->group_count == AGENT_GROUPS_MAX)
        return "there are 16 already";
    struct agent_group *group = &settings->groups[settings->group_count];
    if (!length || length >= sizeof group->pattern || strcspn(value, ";:\n") < length ||
        !is_period(equals + 1, &group->period_ns))
        return "NAMES=HZ: up to 31 characters but ';' and ':', and 0 or 0.001 to 50000";
    memcpy(group->pattern, value, length);
    group->pattern[length] = 0;
    settings->group_count++;
    return NULL;
}

static const char *take_sync(const char *value, void *field)
{
    return is_list(sync_names, value, field) ? NULL
                                             : "a list of alloc, lock, io, poll, sleep, load, thread, map, all, none";
}

static const char *take_metrics(const char *value, void *field)
{
    return is_list(metric_names, value, field) ? NULL : "a list of faults, switches, allocations, all, none";
}

static const char *take_size(const char *value, void *field)
{
    static const char units[] = "KMG";
    const uint64_t least = 1 << 20, most = (uint64_t)16 << 30;
    char *end;
    uint64_t size = strtoull(value, &end, 10);
    const char *unit = *end ? strchr(units, *end) : NULL;
    unsigned shift = unit ? 10 * (unsigned)(unit - units + 1) : 0;
    if (value[0] < '0' || value[0] > '9' || (*end && (!unit || end[1])) || size > most >> shift ||
        size << shift < least)
        return "a size from 1M to 16G";
    *(uint64_t *)field = size << shift;
    return NULL;
}

static const char *take_ms(const char *value, void *field)
{
    double ms;
    if (!is_real(value, 0, 3600000, &ms))
        return "milliseconds, 0 to 3600000";
    *(uint64_t *)field = (uint64_t)(ms * NS_PER_MS);
    return NULL;
}

static const char *take_duration(const char *value, void *field)
{
    double seconds;
    if (!is_real(value, 0.001, 31536000, &seconds))
        return "seconds, more than 0";
    *(uint64_t *)field = (uint64_t)(seconds * (double)ns_per_s);
    return NULL;
}

static const char *take_int(const char *value, void *field)
{
    long number;
    if (!cli_number(value, 1, INT_MAX, &number))
        return "a number from 1 on";
    *(int *)field = (int)number;
    return NULL;
}

static const char *take_faults(const char *value, void *field)
{
    int number = 0;
    const char *wanted = take_int(value, &number);
    *(uint64_t *)field = (uint64_t)number;
    return wanted;
}

static const char *take_signal(const char *value, void *field)
{
    long number;
    if (!cli_number(value, 1, 31, &number) || number == SIGKILL || number == SIGSTOP)
        return "one from 1 to 31 that can be handled";
    *(int32_t *)field = (int32_t)number;
    return NULL;
}

// ---- The options: a row and a field each.

#define FIELD(name) offsetof(struct record_command_options, name)

static const struct row {
    const char *name, *value; // as struct cli_argument
    int letter;               // 0: no short form
    const char *text;
    const char *(*take)(const char *value, void *field);
    size_t field_offset;
} rows[] = {
    {"output", "FILE", 'o', "where to (default: " RECORD_FILE ")", take_text, FIELD(path)},
    {"frequency", "HZ", 'F', "samples a second of each thread that runs (default: 1000)", take_frequency,
     FIELD(settings.period_ns)},
    {"cpu", NULL, 0, "ticks of the processor time that threads use (default)", take_trigger, FIELD(settings.trigger)},
    {"wall", NULL, 0, "ticks of real time, also of threads that wait", take_trigger, FIELD(settings.trigger)},
    {"no-ticks", NULL, 0, "no ticks: what --sync says only", take_trigger, FIELD(settings.trigger)},
    {"group", "NAMES=HZ", 0, "threads whose name fits (\"worker-*\"; main: the first thread) have this pace",
     take_group, FIELD(settings)},
    {"sync", "LIST", 0,
     "what else is sampled: alloc, lock, io, poll, sleep, load, thread, map; all; none (default: load,thread)",
     take_sync, FIELD(settings.sync)},
    {"sync-interval", "MS", 0, "of one thread's such samples; others are counted only; 0: all are stored (default: 10)",
     take_ms, FIELD(settings.sync_interval_ns)},
    {"blocked-least", "MS", 0, "waits from this length on are always stored (default: 1)", take_ms,
     FIELD(settings.blocked_least_ns)},
    {"metrics", "LIST", 0, "faults, switches, allocations; all; none (default: all that is measured)", take_metrics,
     FIELD(settings.metric_mask)},
    {"faults", "N", 0, "one more sample for each N page faults of a thread", take_faults, FIELD(settings.fault_period)},
    {"duration", "S", 0, "seconds, then no more samples", take_duration, FIELD(duration_ns)},
    {"no-children", NULL, 0, "COMMAND alone, not what it starts", take_false, FIELD(settings.follow)},
    {"wait-all", NULL, 0, "record on until all that COMMAND started has ended as well", take_true, FIELD(wait_for_all)},
    {"buffer", "SIZE", 0, "of each process, in memory: bytes, or with K, M or G (default: 16M)", take_size,
     FIELD(settings.segment_bytes)},
    {"keep-newest", NULL, 0, "where the buffer is full, new samples take the place of old ones", take_true,
     FIELD(settings.keep_newest)},
    {"pid", "PID", 'p', "a process that runs", take_int, FIELD(pid)},
    {"tid", "TID", 0, "with -p: this thread only", take_int, FIELD(tid)},
    {"inject", NULL, 0, "with -p: from inside", take_true, FIELD(inject)},
    {"signal", "N", 0, "the signal of the ticks (default: SIGTRAP, which is cheapest; 16 under a debugger)",
     take_signal, FIELD(settings.signal_number)},
    {"live", NULL, 0, "FILE is to be read meanwhile: never older than half a second, and larger", take_true,
     FIELD(live)},
    {"cache", "DIR", 0, "where tables are kept (default: $QUT_CACHE, else ~/.cache/qut/tables)", take_text,
     FIELD(cache_directory)},
    {"no-cache", NULL, 0, "tables are made anew, and kept nowhere", take_true, FIELD(no_cache)},
    {"tables-url", "URL", 0,
     "of modules whose file is gone, or says nothing: ask this server (qutc compile --layout) for the table; may be "
     "given again",
     take_url, FIELD(servers)},
    {"tables-key", "FILE", 0, "PEM file of the key that the server's indexes are signed with", take_text,
     FIELD(servers.key)},
    {"tables-unsigned", NULL, 0, "believe the server instead", take_true, FIELD(servers.is_unsigned)},
    {"json", "FILE", 0, "the summary as JSON, too; also with --quiet", take_text, FIELD(json_path)},
    {"quiet", NULL, 'q', "no status line, no summary: errors only", take_true, FIELD(quiet)},
    {"help", NULL, CLI_ID_HELP, "this text", NULL, 0},
};
enum { ROW_COUNT = sizeof rows / sizeof *rows, FIRST_LONG_ID = 256 };
static_assert((int)ROW_COUNT <= (int)CLI_ARGUMENTS_MAX, "the table of getopt has room");

static int id_of(size_t row)
{
    return rows[row].letter ? rows[row].letter : FIRST_LONG_ID + (int)row;
}

struct parsed {
    struct record_command_options *options;
    bool is_said[ROW_COUNT];
};

static int take_option(void *context, int id, const char *value)
{
    struct parsed *parsed = context;
    const struct row *row = rows;
    while (id_of((size_t)(row - rows)) != id)
        row++;
    parsed->is_said[row - rows] = true;
    const char *wanted = row->take(value ? value : row->name, (char *)parsed->options + row->field_offset);
    return wanted ? cli_bad_value(row->name, value, wanted) : 0;
}

static const char *word_of(int id, size_t index)
{
    for (size_t i = 0; i < ROW_COUNT; i++)
        if (id_of(i) == id)
            return rows[i].take == take_sync      ? sync_names[index].text
                   : rows[i].take == take_metrics ? metric_names[index].text
                                                  : NULL;
    return NULL;
}

static int refuse(const char *name, const char *why)
{
    cli_report(stderr, name, "%s", why);
    return cli_usage_error("record");
}

static bool is_one_of(const char *name, const char *const *names)
{
    while (*names && strcmp(*names, name) != 0)
        names++;
    return *names != NULL;
}

static const char *why_not_with_pid(const struct record_command_options *options, const char *name)
{
    static const char *const of_calls[] = {"sync", "sync-interval", "blocked-least", NULL};
    static const char *const of_agent[] = {"metrics", "faults", "keep-newest", "signal", NULL};
    if (is_one_of(name, of_calls) && options->inject)
        return "not with --inject: what the process calls is bound already. A COMMAND that is started with qut record "
               "has it; -p PID --wall alone shows waits";
    if (is_one_of(name, of_calls))
        return "not with -p: from outside no calls are seen. --wall shows waits; a COMMAND that is started with qut "
               "record has it";
    return is_one_of(name, of_agent) && !options->inject
               ? "not with -p: it needs the agent, which --inject puts into the process"
               : NULL;
}

// Options that would be passed over in silence.
static int check_pid(const struct parsed *parsed)
{
    const struct record_command_options *options = parsed->options;
    const struct agent_settings *settings = &options->settings;
    for (size_t i = 0; i < ROW_COUNT; i++) {
        char name[32];
        if (!parsed->is_said[i] || (rows[i].take == take_sync && !settings->sync)) // "none" asks for nothing
            continue;
        const char *why = why_not_with_pid(options, rows[i].name);
        snprintf(name, sizeof name, "--%s", rows[i].name);
        if (why)
            return refuse(name, why);
    }
    for (uint32_t i = 0; !options->inject && i < settings->group_count; i++)
        if (strcmp(settings->groups[i].pattern, "main") != 0)
            return refuse("--group", "with -p only main=HZ: others need --inject");
    return CLI_GO_ON;
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
    const struct record_servers *servers = &options->servers;
    if (servers->url_count ? !servers->key == !servers->is_unsigned : servers->key || servers->is_unsigned)
        return refuse("--tables-url", "needs one of --tables-key and --tables-unsigned: a build-id is no proof");
    if (strcmp(options->path, "-") == 0)
        return refuse("-o -", "is no file, which a trace is written to");
    if (options->json_path && strcmp(options->json_path, "-") == 0)
        return refuse("--json -", "needs a FILE: standard output is the command's");
    return CLI_GO_ON;
}

int cli_record_options_parse(struct record_command_options *options, int argc, char **argv)
{
    const uint32_t metrics_not_said = UINT32_MAX;
    *options = (struct record_command_options){.path = RECORD_FILE,
                                               .settings = {.trigger = QUT_TRIGGER_BEST,
                                                            .period_ns = ns_per_s / 1000,
                                                            .sync_interval_ns = 10 * NS_PER_MS,
                                                            .blocked_least_ns = NS_PER_MS,
                                                            .segment_bytes = 16 << 20,
                                                            .sync = AGENT_SYNC_LOAD | AGENT_SYNC_THREAD,
                                                            .metric_mask = metrics_not_said,
                                                            .follow = true}};
    struct parsed parsed = {.options = options};
    struct cli_argument arguments[ROW_COUNT];
    for (size_t i = 0; i < ROW_COUNT; i++)
        arguments[i] = (struct cli_argument){rows[i].name, rows[i].value, id_of(i), 0, rows[i].text};
    const struct cli_parser parser = {.command = "record",
                                      .help = help,
                                      .statuses = statuses,
                                      .stop_at_operand = true,
                                      .arguments = arguments,
                                      .argument_count = ROW_COUNT,
                                      .take = take_option,
                                      .context = &parsed,
                                      .word = word_of};
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
    for (size_t i = 0; i < ROW_COUNT; i++)
        options->wants_calls |= parsed.is_said[i] && rows[i].take == take_sync && settings->sync;
    status = check(options);
    return status == CLI_GO_ON && options->pid ? check_pid(&parsed) : status;
}
