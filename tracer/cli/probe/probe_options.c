// SPDX-License-Identifier: Apache-2.0
#include "tracer/cli/probe/probe_options.h"

#include <assert.h>
#include <errno.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>

#include "cli/arguments.h"
#include "cli/diagnostics.h"
#include "formats/qut_calls.h"

static const char help[] =
    "Usage: qut probe -e SCRIPT [OPTION]... [--] COMMAND [ARGUMENT]...\n"
    "       qut probe -e SCRIPT [OPTION]... -p PID\n"
    "       qut probe -f FILE [-a VALUE]... [OPTION]... [--] COMMAND [ARGUMENT]...\n"
    "       qut probe --list PATTERN... [-p PID | COMMAND]\n"
    "       qut probe --list-scripts\n\n"
    "Asks a program questions at the entries and exits of its functions: how often, with what arguments, how long. "
    "The\n"
    "script becomes a small program that is proven harmless, here and once more in the process: it writes nothing of\n"
    "the program's, reads it where that cannot fail, and has no loops.\n\n"
    "SCRIPT is made of clauses, a place, a condition between slashes, and what is done:\n"
    "  entry:[MODULE!]NAME /arg0 > 2/ { @sizes = hist(arg2) }\n"
    "  return:[MODULE!]NAME { @slowest[tid] = max(duration) }\n"
    "  call:[MODULE!]NAME in [MODULE!]CALLER { @calls_of_caller = count() }\n"
    "  unwind:[MODULE!]NAME { @left_by_an_exception[stack()] = count() }\n"
    "  offset:[MODULE!]NAME+0x1c { @came_to_this_instruction = count() }\n"
    "  line:[MODULE!]FILE:120 { @came_to_this_line = count() }\n"
    "  timer:1s { print(@sizes); clear(@sizes) }\n"
    "  end { printf(\"done\\n\") }\n"
    "  alloc /size > 4096/ { @large[stack()] = count() }\n"
    "  unlock { @held[stack()] = hist(held) }\n"
    "  throw { @thrown[str(type), stack()] = count() }\n"
    "NAME and MODULE are patterns as those of qut trace -f. docs/probes.md has the language.\n"
    "Where there is debug information, args->NAME is an argument, and args->NAME->x a member of what it leads to;\n"
    "likewise retval->x. A clause that has these runs in the functions that COMMAND's file and its libraries have, or\n"
    "those that the process has when we come; not in files that are loaded later.\n\n"
    "FILE is also the name of a script that comes with us: --list-scripts has them. A VALUE takes the place of $1, "
    "the\n"
    "next one of $2, up to $9; ${1:-TEXT} is TEXT where there is none.\n"
    "FILE may be an object of clang -target bpf as well, made with <qut/probe.h>: SEC(\"entry:[MODULE!]NAME\").\n\n"
    "COMMAND is started with an agent in it (LD_PRELOAD), and so is what it starts. Into a process that runs (-p) it\n"
    "is loaded, until Ctrl-C, --duration, or its end; then all is put back, and it goes on. Maps are shown at the "
    "end.\n"
    "\n"
    "With -o a trace is left as qut record leaves one, with the maps' values as counters beside its samples, for\n"
    "qut report and qut export: of a map with many keys those of the 16 greatest. --calls puts each call of the\n"
    "probed functions there as well, whatever conditions say.\n\n"
    "Example: qut probe -e 'entry:libc.so*!open* { @[str(arg0), str(arg1)] = count() }' -p $(pgrep -n redis-server)\n"
    "         qut probe -f slow-calls -a 'libc.so*!read' -a 1ms -- COMMAND\n"
    "         qut probe -o slow.qtrace -e 'entry:libc.so*!malloc { @bytes = sum(arg0) }' -- COMMAND\n";

static const char statuses[] =
    "\nExit status: COMMAND's own (128 + N where signal N ended it); 1 where that is 0 and a place fitted no function\n"
    "of any file that was loaded, a process was not probed, records of printf had no room, stacks were shown by\n"
    "numbers whose frames cannot be told, places within functions cannot be probed, probes were over --budget, calls\n"
    "had no room, or not all could be written to -o FILE;\n"
    "127 COMMAND was not found, 126 it cannot be started; 128 + N where signal N made us leave it; 2 bad usage,\n"
    "a mistake in SCRIPT, or a process that cannot be probed.\n"
    "With --explain and --compile: 0 ok; 2 as above. With --list and --functions as qut trace --list.\n"
    "With -p: 0 ok; 1 as above, or something could not be put back; 2 as above.\n";

enum {
    ID_SCRIPT = 'e',
    ID_FILE = 'f',
    ID_PARAMETER = 'a',
    ID_PID = 'p',
    ID_OUTPUT = 'o',
    ID_QUIET = 'q',
    ID_DURATION = 256,
    ID_BUDGET,
    ID_INTERPRET,
    ID_JSON,
    ID_PROMETHEUS,
    ID_EVERY,
    ID_CALLS,
    ID_WAIT,
    ID_SAMPLES,
    ID_EXPLAIN,
    ID_COMPILE,
    ID_LIST,
    ID_FUNCTIONS,
    ID_LIST_SCRIPTS,
    ID_NO_CHILDREN,
    ID_CACHE,
    ID_NO_CACHE,
};

static const struct cli_argument arguments[] = {
    {"expression", "SCRIPT", ID_SCRIPT, 0, "the script"},
    {"file", "FILE", ID_FILE, 0,
     "a file with the script, the name of one that comes with us, or an object of clang -target bpf"},
    {"arg", "VALUE", ID_PARAMETER, 0, "the script's $1; said again, its $2, and so on"},
    {"list-scripts", NULL, ID_LIST_SCRIPTS, 0, "the scripts that come with us, and what they answer; starts nothing"},
    {"pid", "PID", ID_PID, 0, "a process that runs"},
    {"duration", "S", ID_DURATION, 0, "seconds, then all is put back"},
    {"budget", "PERCENT", ID_BUDGET, 0,
     "probes that take more of a process's processor time than that are switched off, which is said; it goes on"},
    {"interpret", NULL, ID_INTERPRET, 0,
     "programs are interpreted; without this they run as machine code, several times as fast"},
    {"json", NULL, ID_JSON, 0, "a JSON document a line, for each map that is shown and each printf"},
    {"prometheus", NULL, ID_PROMETHEUS, 0,
     "the maps of the end as Prometheus reads them; what the script prints before goes to standard error"},
    {"output", "FILE", ID_OUTPUT, 0,
     "a trace as of qut record: samples, and beside them maps as counters, and what printf says as instants"},
    {"every", "MS", ID_EVERY, 0, "with -o: milliseconds from one look at the maps to the next (default: 100)"},
    {"calls", NULL, ID_CALLS, 0, "with -o: also each call of the functions that are probed, as qut trace records them"},
    {"wait", NULL, ID_WAIT, 0,
     "with --calls: a thread whose calls have no room waits; else those are lost, and counted"},
    {"samples", "HZ", ID_SAMPLES, 0, "with -o: samples a second of each thread that runs (default: 1000; 0: none)"},
    {"explain", NULL, ID_EXPLAIN, 0,
     "say in plain words what SCRIPT would do; starts nothing. With a COMMAND or -p also of how many functions"},
    {"compile", "FILE", ID_COMPILE, 0,
     "SCRIPT's programs into a new FILE, for a program that probes itself (<qut/own_probes.h>); starts nothing"},
    {"list", "PATTERN", ID_LIST, 0,
     "the functions of a pattern, and what debug information declares them as; may be said again; starts nothing"},
    {"functions", NULL, ID_FUNCTIONS, 0, "likewise those of SCRIPT's places"},
    {"no-children", NULL, ID_NO_CHILDREN, 0, "COMMAND alone, not what it starts"},
    {"cache", "DIR", ID_CACHE, 0, "where tables and plans are kept (default: $QUT_CACHE, else ~/.cache/qut/tables)"},
    {"no-cache", NULL, ID_NO_CACHE, 0, "they are made anew, and kept nowhere"},
    {"quiet", NULL, ID_QUIET, 0, "no summary: what the script says, and errors"},
    {"help", NULL, CLI_ID_HELP, 0, "this text"},
};
enum { ARGUMENT_COUNT = sizeof arguments / sizeof *arguments };
static_assert((int)ARGUMENT_COUNT <= (int)CLI_ARGUMENTS_MAX, "the table of getopt has room for them");

static int take_pid(struct probe_options *options, const char *value)
{
    long pid;
    if (!cli_number(value, 1, INT_MAX, &pid))
        return cli_bad_value("pid", value, "a number from 1 on");
    options->calls.pid = (int)pid;
    return cli_calls_pass(&options->calls, "--pid", value);
}

static int take_listed(struct probe_options *options, const char *value)
{
    if (!*value || strlen(value) > TRACED_PATTERN_BYTES)
        return cli_bad_value("list", value, "[MODULE!]NAME");
    if (options->calls.traced.pattern_count == CALLS_PATTERNS_MAX / 2) // a script may have as many
        return cli_bad_value("list", value, "at most 128 of them");
    options->list = true;
    options->calls.patterns[options->calls.traced.pattern_count++] = value;
    return 0;
}

static int take_parameter(struct probe_options *options, const char *value)
{
    if (options->parameter_count == PROBE_PARAMETERS_MAX)
        return cli_bad_value("arg", value, "at most 9 of them");
    options->parameters[options->parameter_count++] = value;
    return 0;
}

static int take_budget(struct probe_options *options, const char *value)
{
    char *end;
    errno = 0;
    const double percent = strtod(value, &end);
    if (end == value || *end || errno || !(percent >= 0.1 && percent <= 99.9))
        return cli_bad_value("budget", value, "a percentage from 0.1 to 99.9");
    options->budget_permille = (uint32_t)(percent * 10 + 0.5);
    return 0;
}

static int take_every(struct probe_options *options, const char *value)
{
    long number;
    if (!cli_number(value, 10, 3600000, &number))
        return cli_bad_value("every", value, "milliseconds, from 10 to 3600000");
    options->every_ms = (uint32_t)number;
    return 0;
}

static int take_option(void *context, int id, const char *value)
{
    struct probe_options *options = context;
    switch (id) {
    case ID_SCRIPT: options->script = value; return 0;
    case ID_FILE: options->script_path = value; return 0;
    case ID_PARAMETER: return take_parameter(options, value);
    case ID_LIST_SCRIPTS: options->list_scripts = true; return 0;
    case ID_PID: return take_pid(options, value);
    case ID_DURATION: return cli_calls_pass(&options->calls, "--duration", value);
    case ID_BUDGET: return take_budget(options, value);
    case ID_INTERPRET: options->interprets = true; return 0;
    case ID_JSON: options->json = true; return 0;
    case ID_PROMETHEUS: options->prometheus = true; return 0;
    case ID_OUTPUT: options->output = value; return 0;
    case ID_EVERY: return take_every(options, value);
    case ID_CALLS: options->tells_calls = true; return 0;
    case ID_WAIT: options->calls.traced.waits_for_room = true; return 0;
    case ID_SAMPLES: options->samples = value; return 0;
    case ID_EXPLAIN: options->explain = true; return 0;
    case ID_COMPILE: options->image = value; return 0;
    case ID_LIST: return take_listed(options, value);
    case ID_FUNCTIONS: options->list = true; return 0;
    case ID_NO_CHILDREN: return cli_calls_pass(&options->calls, "--no-children", NULL);
    case ID_CACHE: options->calls.cache_directory = value; return cli_calls_pass(&options->calls, "--cache", value);
    case ID_NO_CACHE: options->calls.no_cache = true; return cli_calls_pass(&options->calls, "--no-cache", NULL);
    case ID_QUIET: options->quiet = true; return cli_calls_pass(&options->calls, "--quiet", NULL);
    default: return -1;
    }
}

static int refuse(const char *name, const char *why)
{
    cli_report(stderr, name, "%s", why);
    return cli_usage_error("probe");
}

// Without calls rings are never written to.
static int take_calls(struct probe_options *options)
{
    if (options->tells_calls && !options->output)
        return refuse("--calls", "needs -o FILE");
    if (options->calls.traced.waits_for_room && !options->tells_calls)
        return refuse("--wait", "needs --calls");
    if (options->tells_calls)
        options->calls.ring_bytes = CALLS_RING_BYTES;
    return CLI_GO_ON;
}

// Of the recording; without -o nothing of it is kept, and it has no samples.
static int pass_samples(struct probe_options *options)
{
    static const char standard[] = "1000";
    const char *samples = options->samples ? options->samples : standard;
    if (!options->output && options->samples)
        return refuse("--samples", "needs -o FILE");
    if (!options->output && options->every_ms)
        return refuse("--every", "needs -o FILE");
    if (options->output && cli_calls_pass(&options->calls, "--output", options->output) != 0)
        return CLI_BAD;
    options->calls.has_ticks = options->output && strcmp(samples, "0") != 0;
    return (options->calls.has_ticks ? cli_calls_pass(&options->calls, "--frequency", samples)
                                     : cli_calls_pass(&options->calls, "--no-ticks", NULL)) == 0
               ? CLI_GO_ON
               : CLI_BAD;
}

int cli_probe_options_parse(struct probe_options *options, int argc, char **argv)
{
    const struct cli_parser parser = {.command = "probe",
                                      .help = help,
                                      .statuses = statuses,
                                      .stop_at_operand = true,
                                      .arguments = arguments,
                                      .argument_count = ARGUMENT_COUNT,
                                      .take = take_option,
                                      .context = options};
    int first;
    *options = (struct probe_options){.calls = {.ring_bytes = QUT_CALLS_RING_BYTES_MIN}};
    int status = cli_parse(&parser, argc, argv, &first);
    if (status != CLI_GO_ON)
        return status;
    struct calls_options *calls = &options->calls;
    calls->command = first < argc ? argv + first : NULL;
    const bool is_listed = calls->traced.pattern_count != 0, has_script = options->script || options->script_path;
    if (options->list_scripts)
        return CLI_GO_ON;
    if (options->parameter_count && !has_script)
        return refuse("--arg", "there is no SCRIPT that has parameters");
    if (is_listed && has_script)
        return refuse("--list", "a PATTERN and a SCRIPT: not both; --functions lists those of a SCRIPT");
    if (options->json && options->prometheus)
        return refuse("--prometheus", "not with --json: standard output has one form");
    if (options->list && options->explain)
        return refuse("--explain", "not with --list or --functions");
    if (options->image && (options->list || options->explain || calls->pid || calls->command))
        return refuse("--compile", "not with a COMMAND, -p, --explain, --list or --functions: nothing is started");
    if (!is_listed && !options->script == !options->script_path)
        return refuse("probe", "needs a SCRIPT: -e SCRIPT, or -f FILE");
    if (!calls->pid && !calls->command && !options->explain && !options->image)
        return refuse("probe", "needs a COMMAND, or -p PID");
    if (calls->pid && calls->command)
        return refuse(calls->command[0], "a COMMAND and -p PID: not both");
    if (calls->pid && cli_calls_pass(calls, "--inject", NULL) != 0)
        return CLI_BAD;
    const int status_of_calls = take_calls(options);
    return status_of_calls == CLI_GO_ON ? pass_samples(options) : status_of_calls;
}
