// SPDX-License-Identifier: Apache-2.0
#include "tracer/cli/upload/options.h"

#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "cli/arguments.h"
#include "cli/diagnostics.h"

static const char upload_help[] =
    "Usage: qut upload FILE... --as FORM --spool DIR --to URL\n"
    "       qut upload --as FORM --spool DIR --to URL\n"
    "       qut upload FILE... --as FORM --dry-run\n\n"
    "Sends traces to a receiver. Each becomes one request, or more, which are put into the spool, a folder, first; "
    "what\n"
    "lies there is sent, the oldest first, and stays until it was accepted or refused: a later run sends what an\n"
    "earlier one could not. A process that was killed at any instant, and a full disk, leave nothing uncounted.\n\n"
    "  otlp    OpenTelemetry's profiles (opentelemetry-proto 1.11): POST to /v1development/profiles\n"
    "  pprof   Pyroscope's push API: POST to /push.v1.PusherService/Push\n"
    "  file    the trace as it is: PUT to URL, a presigned one, or one that has {id}, which becomes the request's "
    "id\n\n"
    "URL without a path gets the one above. @FILE instead of URL reads it from a file: who has a presigned URL can "
    "use\n"
    "it, and arguments are seen by others. FILE may have labels: FILE,host=NAME,service=NAME,version=NAME. Without\n"
    "--to nothing is sent; without FILE nothing new is taken.\n\n"
    "Statuses 429, 502, 503 and 504 and broken connections are tried again, the same bytes with the same id; every\n"
    "other refusal is final. The last line counts: taken = sent + waiting + dropped, of all that the spool ever "
    "had.\n\n"
    "Example: qut upload app.qtrace,service=shop --as otlp --spool spool --to http://collector:4318\n"
    "         qut upload --as otlp --spool spool --to http://collector:4318\n"
    "         qut upload app.qtrace --as pprof --dry-run\n";

static const char upload_statuses[] =
    "\nExit status: 0 all was accepted, or put into the spool without --to; 1 something "
    "waits, or was dropped or rejected, or a FILE is incomplete; 2 bad usage or input, or nothing can be sent.\n";

static const char monitor_help[] =
    "Usage: qut monitor DIR... --as FORM --spool DIR [--to URL]\n"
    "       qut monitor --processes [DIR]... --as FORM --spool DIR [--to URL]\n"
    "       qut monitor --list [DIR]...\n"
    "       qut monitor --inject PID... DIR\n"
    "       qut monitor --eject PID... [DIR]\n\n"
    "Takes what the processes of this host sample, window by window, and sends it. A process that is linked with "
    "libqut\n"
    "makes its segment in a DIR of a memory file system (qut_trace_options.path, keeping the newest). Of each segment "
    "that\n"
    "is found there a window has what is new since the last one, aggregated by stack and thread: one request for all\n"
    "processes (otlp), or one for each (pprof), which goes to the spool as those of qut upload do. Names are left to "
    "the\n"
    "receiver, by build-id and address, unless --names is given. A segment whose process is gone is read to its end, "
    "and\n"
    "removed. Without --to nothing is sent: what waits there, qut upload sends.\n\n"
    "What was taken of whom is remembered in the spool. Ended at any instant and begun again, it takes nothing twice; "
    "the\n"
    "last lines count the samples that processes told of, and where they are, of all that the spool ever had.\n\n"
    "--processes finds segments that are memory without a name (no path) as well, in all processes whose\n"
    "descriptors may be looked at: this user's, with CAP_SYS_PTRACE all, of containers too. It holds each until it\n"
    "was read to its end.\n\n"
    "With a budget the rate halves as often as it takes: programs that have the agent of qut preloaded are told to "
    "store\n"
    "fewer of their ticks, each of which then stands for more processor time, and windows last longer.\n\n"
    "With --rings and SIGUSR1 what each segment keeps at that moment is written as a .qtrace file, with the times "
    "that\n"
    "windows do not have: qut upload --as file sends them. --ring-mark and --ring-slow do so when a process says\n"
    "what happened; once in a window at most.\n\n"
    "--list names the processes that have the agent in their environment, and a DIR for it: those that have a segment\n"
    "there, those that have none yet, and those that did not load the agent; and those that --inject gave it.\n\n"
    "--inject puts the agent into a process that runs: it samples as if it had been preloaded with QUT_AGENT=DIR, but\n"
    "for children, and stays when this command ends; a monitor of DIR, this one with --spool or another, finds its\n"
    "segment. DIR may have settings behind it as there: 'DIR;p=10000000'. Tables that are missing in\n"
    "/var/cache/qut/tables are made first, where that may be written. --eject takes it out again.\n\n"
    "Example: qut monitor /dev/shm/qut --as otlp --spool /var/spool/qut --to https://collector:4318\n"
    "         qut monitor /dev/shm/qut --as pprof --spool spool --once\n"
    "         qut monitor --processes --as otlp --spool /var/spool/qut\n"
    "         qut monitor --inject 4711 /run/qut\n"
    "         qut monitor /dev/shm/qut --as otlp --spool spool --rings rings --ring-mark anr --ring-slow request=500\n";

static const char monitor_statuses[] =
    "\nExit status: 0 it ended as asked (--once, --duration, SIGTERM, SIGINT) and all is in windows; 1 samples were "
    "lost,\na DIR or a segment could not be read, or a request waits with --to, or was dropped or rejected; 2 bad "
    "usage, or a window could not be taken, or a PID could not be injected or ejected.\n";

enum {
    ID_TO = 256,
    ID_AS,
    ID_SPOOL,
    ID_SPOOL_BYTES,
    ID_MAX_BYTES,
    ID_MAX_SAMPLES,
    ID_KIND,
    ID_NO_NAMES,
    ID_TOKEN,
    ID_HEADERS,
    ID_CACERT,
    ID_TIMEOUT,
    ID_WAIT,
    ID_PATIENCE,
    ID_DRY_RUN,
    ID_DEBUG_ROOT,
    ID_SYSROOT,
    ID_NO_INLINES,
    ID_NAMES,
    ID_HOST,
    ID_SERVICE,
    ID_VERSION,
    ID_WINDOW,
    ID_ONCE,
    ID_PROCESSES,
    ID_RINGS,
    ID_RING_MARK,
    ID_RING_SLOW,
    ID_LIST,
    ID_INJECT,
    ID_EJECT,
    ID_DURATION,
    ID_WINDOW_SHARE,
    ID_BUDGET_CPU,
    ID_BUDGET_MB_DAY,
    ID_QUIET = 'q',
};

#define KINDS "cpu, wall, alloc, lock, io or other"
#define SIZES "a number of bytes, or of k, M, G of them"

enum {
    URL_MAX_BYTES = 8192,
    TIMEOUT_MAX_S = 3600,
    WAIT_MAX_MS = 60000,
    PATIENCE_MAX_S = 1000000,
    WINDOW_MAX_S = 86400,
    DURATION_MAX_S = 1000000000,
    SAMPLES_MAX = 1000000000,
    PUSH_SAMPLES_MAX = 16000, // Pyroscope's default
};

static const struct cli_argument arguments[] = {
    {"to", "URL|@FILE", ID_TO, 0, "where to: http or https"},
    {"as", "FORM", ID_AS, 0, "one of those above"},
    {"spool", "DIR", ID_SPOOL, 0, "where requests wait; it is made if it is not there"},
    {"spool-bytes", "SIZE", ID_SPOOL_BYTES, 0, "of what waits: the oldest is dropped for the newest (default: 64M)"},
    {"max-bytes", "SIZE", ID_MAX_BYTES, 0,
     "of a request, unpacked: longer ones become several, of a part of the time (default: otlp 64M, pprof 4M)"},
    {"max-samples", "N", ID_MAX_SAMPLES, 0,
     "of a request, equal ones as one: more become several likewise (default: otlp any, pprof 16000)"},
    {"kind", "KIND", ID_KIND, 0, KINDS ": samples of this kind (default: the recording's main kind)"},
    {"no-names", NULL, ID_NO_NAMES, UPLOAD_COMMAND,
     "addresses and build-ids without names, for the receiver to look up"},
    {"token-file", "FILE", ID_TOKEN, 0, "its first line is sent as a bearer token; by https, or to this machine"},
    {"headers", "FILE", ID_HEADERS, 0, "each of its lines, \"Name: value\", is sent as a header; as with tokens"},
    {"cacert", "FILE", ID_CACERT, 0, "PEM file of the certificates that are trusted (default: the system's)"},
    {"timeout", "S", ID_TIMEOUT, 0, "seconds for one request (default: 30)"},
    {"wait", "MS", ID_WAIT, 0, "before a request is sent again; doubled each time, up to a minute (default: 1000)"},
    {"patience", "S", ID_PATIENCE, 0,
     "seconds for all: then what is left waits; 0: each is sent once (default: 60; monitor: 10)"},
    {"dry-run", NULL, ID_DRY_RUN, UPLOAD_COMMAND, "send and keep nothing: list what would leave this host"},
    {"debug-root", "DIR", ID_DEBUG_ROOT, 0, "where separate debug files are (/usr/lib/debug)"},
    {"sysroot", "DIR", ID_SYSROOT, UPLOAD_COMMAND, "open the files of modules below DIR: a trace of another machine"},
    {"no-inlines", NULL, ID_NO_INLINES, 0, "no inlined functions, which need debug information: faster"},
    {"names", NULL, ID_NAMES, MONITOR_COMMAND, "functions' names too: files are read for them, in each window"},
    {"host", "NAME", ID_HOST, MONITOR_COMMAND, "what this host is called (default: its name)"},
    {"service", "NAME", ID_SERVICE, MONITOR_COMMAND, "what all processes are of (default: each its own name)"},
    {"version", "NAME", ID_VERSION, MONITOR_COMMAND, "of the service"},
    {"window", "S", ID_WINDOW, MONITOR_COMMAND,
     "seconds of a window; hosts begin theirs at different ones (default: 60)"},
    {"processes", NULL, ID_PROCESSES, MONITOR_COMMAND, "also segments that are memory without a name: /proc/PID/fd"},
    {"list", NULL, ID_LIST, MONITOR_COMMAND, "list preloaded processes, and whether they have a segment; nothing else"},
    {"inject", "PID", ID_INJECT, MONITOR_COMMAND,
     "put the agent into this process, to record into DIR; nothing else without --spool; may be given again"},
    {"eject", "PID", ID_EJECT, MONITOR_COMMAND, "take it out of this process again; nothing else; may be given again"},
    {"rings", "DIR", ID_RINGS, MONITOR_COMMAND,
     "a spool of its own: with SIGUSR1 what segments keep goes there, with all times, a .qtrace file for each process"},
    {"ring-mark", "NAME", ID_RING_MARK, MONITOR_COMMAND,
     "rings also when a process makes this mark (qut_trace_mark); may be given again"},
    {"ring-slow", "NAME=MS", ID_RING_SLOW, MONITOR_COMMAND,
     "rings also when work with this mark takes so long, begun and not ended; may be given again"},
    {"once", NULL, ID_ONCE, MONITOR_COMMAND, "one window, of what is there now"},
    {"duration", "S", ID_DURATION, MONITOR_COMMAND, "end after so many seconds, with a last window"},
    {"window-share", "PERCENT", ID_WINDOW_SHARE, MONITOR_COMMAND,
     "of windows are taken, drawn by lot; of the others nothing is sent (default: 100)"},
    {"budget-cpu", "PERCENT", ID_BUDGET_CPU, MONITOR_COMMAND,
     "of a core, for this command itself: above it the rate halves, and windows last twice as long (default: none)"},
    {"budget-mb-day", "N", ID_BUDGET_MB_DAY, MONITOR_COMMAND,
     "megabytes a day, of requests as they are sent: above it likewise (default: none)"},
    {"quiet", NULL, ID_QUIET, 0, "no remarks on standard error, errors only"},
    {"help", NULL, CLI_ID_HELP, 0, "this text"},
};

static int take_size(const char *option, const char *value, uint64_t *size)
{
    static const char units[] = "kMG";
    char *end = NULL;
    const unsigned long long number = strspn(value, "0123456789") ? strtoull(value, &end, 10) : 0;
    const char *unit = end && *end ? strchr(units, *end) : NULL;
    const unsigned shift = unit ? 10 * ((unsigned)(unit - units) + 1) : 0;
    if (!number || !end || (*end && (!unit || end[1])) || number > UINT64_MAX >> 1 >> shift)
        return cli_bad_value(option, value, SIZES);
    *size = (uint64_t)number << shift;
    return 0;
}

static int take_number(const char *option, const char *value, long least, long most, const char *what, long *number)
{
    return cli_number(value, least, most, number) ? 0 : cli_bad_value(option, value, what);
}

static int take_positive(const char *option, const char *value, double most, const char *what, double *number)
{
    char *end = NULL;
    const double taken = strspn(value, "0123456789.") == strlen(value) ? strtod(value, &end) : 0;
    if (!end || end == value || *end || !(taken > 0) || taken > most)
        return cli_bad_value(option, value, what);
    *number = taken;
    return 0;
}

static int take_trigger(struct upload_options *options, bool is_slow, char *value)
{
    static const char wanted[] = "NAME=MS, milliseconds from 1 to 1000000000";
    char *equals = is_slow ? strrchr(value, '=') : NULL;
    long ms = 0;
    if (options->trigger_count == TRIGGERS_MAX)
        return cli_bad_value(is_slow ? "ring-slow" : "ring-mark", value, "one of at most 16");
    if (is_slow && (!equals || !cli_number(equals + 1, 1, DURATION_MAX_S, &ms)))
        return cli_bad_value("ring-slow", value, wanted);
    if (equals)
        *equals = '\0';
    if (!*value)
        return cli_bad_value(is_slow ? "ring-slow" : "ring-mark", value, is_slow ? wanted : "a mark's name");
    options->triggers[options->trigger_count++] =
        (struct monitor_trigger){.name = value, .slow_ns = (uint64_t)ms * 1000000};
    return 0;
}

static int take_pid(const char *option, const char *value, int *pids, size_t *count)
{
    long number = 0;
    if (*count == FLIGHTS_MAX)
        return cli_bad_value(option, value, "one of at most 256");
    if (!cli_number(value, 1, INT_MAX, &number))
        return cli_bad_value(option, value, "a process id");
    pids[(*count)++] = (int)number;
    return 0;
}

// What the file says is not shown, whatever is wrong.
static int take_url(struct upload_options *options, const char *value)
{
    static char url[URL_MAX_BYTES];
    options->has_target = true;
    options->target.url = value;
    if (*value != '@')
        return 0;
    FILE *file = fopen(value + 1, "re");
    if (!file || !fgets(url, sizeof url, file))
        *url = '\0';
    if (file)
        fclose(file);
    const size_t length = strcspn(url, "\r\n");
    const bool is_whole = length && length < sizeof url - 1;
    url[length] = '\0';
    options->target.url = url;
    return is_whole ? 0 : cli_bad_value("to", value, "a file whose first line is a URL");
}

static int take_option(void *context, int id, const char *value)
{
    struct upload_options *options = context;
    long number = 0;
    int status = 0;
    switch (id) {
    case ID_TO: return take_url(options, value);
    case ID_AS:
        return upload_form_named(value, &options->wanted.form) ? 0 : cli_bad_value("as", value, "otlp, pprof or file");
    case ID_SPOOL: options->spool = value; return 0;
    case ID_SPOOL_BYTES: return take_size("spool-bytes", value, &options->spool_bytes);
    case ID_MAX_BYTES: return take_size("max-bytes", value, &options->wanted.max_bytes);
    case ID_MAX_SAMPLES:
        status = take_number("max-samples", value, 1, SAMPLES_MAX, "a number from 1 to 1000000000", &number);
        options->wanted.max_samples = (uint64_t)number;
        return status;
    case ID_KIND: return analysis_kind_named(value, &options->wanted.kind) ? 0 : cli_bad_value("kind", value, KINDS);
    case ID_NO_NAMES: options->wanted.no_names = true; return 0;
    case ID_TOKEN: options->target.token_file = value; return 0;
    case ID_HEADERS: options->target.header_file = value; return 0;
    case ID_CACERT: options->target.certificates = value; return 0;
    case ID_TIMEOUT:
        status = take_number("timeout", value, 1, TIMEOUT_MAX_S, "seconds from 1 to 3600", &number);
        options->target.timeout_ms = (unsigned)number * 1000;
        return status;
    case ID_WAIT:
        status = take_number("wait", value, 1, WAIT_MAX_MS, "milliseconds from 1 to 60000", &number);
        options->target.wait_ms = (unsigned)number;
        return status;
    case ID_PATIENCE:
        status = take_number("patience", value, 0, PATIENCE_MAX_S, "seconds from 0 to 1000000", &number);
        options->target.patience_ms = (uint64_t)number * 1000;
        return status;
    case ID_DRY_RUN: options->dry_run = true; return 0;
    case ID_DEBUG_ROOT: options->debug_root = value; return 0;
    case ID_SYSROOT: options->wanted.system_root = value; return 0;
    case ID_NO_INLINES: options->no_inlines = true; return 0;
    case ID_NAMES: options->wanted.no_names = false; return 0;
    case ID_HOST: options->wanted.labels.host = value; return 0;
    case ID_SERVICE: options->wanted.labels.service = value; return 0;
    case ID_VERSION: options->wanted.labels.version = value; return 0;
    case ID_WINDOW:
        status = take_number("window", value, 1, WINDOW_MAX_S, "seconds from 1 to 86400", &number);
        options->window_s = (unsigned)number;
        return status;
    case ID_ONCE: options->once = true; return 0;
    case ID_LIST: options->list = true; return 0;
    case ID_INJECT: return take_pid("inject", value, options->inject, &options->inject_count);
    case ID_EJECT: return take_pid("eject", value, options->eject, &options->eject_count);
    case ID_RINGS: options->rings = value; return 0;
    case ID_RING_MARK:
    case ID_RING_SLOW: return take_trigger(options, id == ID_RING_SLOW, (char *)(uintptr_t)value);
    case ID_PROCESSES: options->processes = true; return 0;
    case ID_DURATION:
        status = take_number("duration", value, 1, DURATION_MAX_S, "seconds from 1 to 1000000000", &number);
        options->duration_s = (unsigned)number;
        return status;
    case ID_WINDOW_SHARE:
        status = take_number("window-share", value, 1, 100, "percent of windows, from 1 to 100", &number);
        options->wanted.window_share_percent = number < 100 ? (unsigned)number : 0;
        return status;
    case ID_BUDGET_CPU:
        return take_positive("budget-cpu", value, 100, "percent of a core, above 0 up to 100",
                             &options->cpu_percent_most);
    case ID_BUDGET_MB_DAY:
        return take_positive("budget-mb-day", value, 1e9, "megabytes a day, above 0", &options->mb_day_most);
    case ID_QUIET: options->quiet = true; return 0;
    default: return -1;
    }
}

static const char *word_of(int id, size_t index)
{
    return id == ID_AS && index < UPLOAD_FORM_COUNT ? upload_form_name((enum upload_form)index) : NULL;
}

static int refuse(enum upload_command command, const char *name, const char *why)
{
    cli_report(stderr, name, "%s", why);
    return cli_usage_error(command == MONITOR_COMMAND ? "monitor" : "upload");
}

static int check_upload(const struct upload_options *options)
{
    const bool has_form = options->wanted.form != UPLOAD_FORM_COUNT;
    if (options->dry_run && !options->file_count)
        return refuse(UPLOAD_COMMAND, "--dry-run", "needs a FILE");
    if (!options->dry_run && !options->spool)
        return refuse(UPLOAD_COMMAND, "upload", "needs --spool DIR, where requests wait");
    if (!has_form && (options->file_count || options->has_target))
        return refuse(UPLOAD_COMMAND, "upload", "needs --as FORM");
    if (has_form && options->wanted.form == UPLOAD_FILE &&
        (options->wanted.no_names || options->wanted.kind != SELECTION_MAIN))
        return refuse(UPLOAD_COMMAND, "--as file", "sends the trace as it is: neither --kind nor --no-names");
    return CLI_GO_ON;
}

static int check_flight(const struct upload_options *options)
{
    if (options->inject_count && options->eject_count)
        return refuse(MONITOR_COMMAND, "--eject", "not beside --inject");
    if (options->eject_count && (options->spool || options->list || options->processes || options->file_count > 1))
        return refuse(MONITOR_COMMAND, "--eject", "stands alone, with at most one DIR");
    if (options->inject_count && (options->list || options->file_count != 1))
        return refuse(MONITOR_COMMAND, "--inject", "needs one DIR, which the process has its segment in");
    return CLI_GO_ON;
}

static int check_monitor(const struct upload_options *options)
{
    const int status = check_flight(options);
    if (status != CLI_GO_ON || options->list || options->flies_only)
        return status;
    if (!options->file_count && !options->processes)
        return refuse(MONITOR_COMMAND, "monitor", "needs a DIR, where processes have their segments, or --processes");
    if (!options->spool)
        return refuse(MONITOR_COMMAND, "monitor", "needs --spool DIR, where windows wait");
    if (options->wanted.form == UPLOAD_FORM_COUNT || options->wanted.form == UPLOAD_FILE)
        return refuse(MONITOR_COMMAND, "monitor", "needs --as otlp or --as pprof");
    if (options->once && (options->cpu_percent_most > 0 || options->mb_day_most > 0))
        return refuse(MONITOR_COMMAND, "--once", "is one window: no budget");
    if (options->once && options->wanted.window_share_percent)
        return refuse(MONITOR_COMMAND, "--once", "is one window: no share of windows");
    if (options->once && options->rings)
        return refuse(MONITOR_COMMAND, "--once", "waits for no signal: no --rings");
    if (options->trigger_count && !options->rings)
        return refuse(MONITOR_COMMAND, options->triggers[0].slow_ns ? "--ring-slow" : "--ring-mark",
                      "needs --rings DIR");
    if (options->rings && strcmp(options->rings, options->spool) == 0)
        return refuse(MONITOR_COMMAND, "--rings", "needs a spool of its own");
    if (options->once && options->duration_s)
        return refuse(MONITOR_COMMAND, "--once", "ends by itself: no --duration");
    return CLI_GO_ON;
}

int upload_options_parse(struct upload_options *options, enum upload_command command, int argc, char **argv)
{
    const bool monitors = command == MONITOR_COMMAND;
    const struct cli_parser parser = {.command = monitors ? "monitor" : "upload",
                                      .help = monitors ? monitor_help : upload_help,
                                      .statuses = monitors ? monitor_statuses : upload_statuses,
                                      .arguments = arguments,
                                      .argument_count = sizeof arguments / sizeof *arguments,
                                      .set = command,
                                      .take = take_option,
                                      .context = options,
                                      .word = word_of};
    static const uint64_t max_bytes[UPLOAD_FORM_COUNT] = {64u << 20, 4u << 20, UINT64_MAX};
    int first;
    *options = (struct upload_options){
        .spool_bytes = 64u << 20,
        .target = {.timeout_ms = 30000, .wait_ms = 1000, .patience_ms = monitors ? 10000 : 60000},
        .wanted = {.kind = SELECTION_MAIN, .form = UPLOAD_FORM_COUNT, .no_names = monitors},
        .window_s = 60};
    const int status = cli_parse(&parser, argc, argv, &first);
    if (status != CLI_GO_ON)
        return status;
    options->files = argv + first;
    options->file_count = argc - first;
    if (options->wanted.form != UPLOAD_FORM_COUNT && !options->wanted.max_bytes)
        options->wanted.max_bytes = max_bytes[options->wanted.form];
    if (options->wanted.form == UPLOAD_PPROF && !options->wanted.max_samples)
        options->wanted.max_samples = PUSH_SAMPLES_MAX;
    options->target.form = options->wanted.form;
    options->flies_only =
        options->eject_count || (options->inject_count && !options->spool && options->wanted.form == UPLOAD_FORM_COUNT);
    char *settings = options->inject_count && options->file_count ? strchr(options->files[0], ';') : NULL;
    if (settings) {
        *settings = '\0';
        options->settings = settings + 1;
    }
    return monitors ? check_monitor(options) : check_upload(options);
}
