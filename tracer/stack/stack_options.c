// SPDX-License-Identifier: Apache-2.0
#include "tracer/stack/stack_options.h"

#include <assert.h>
#include <limits.h>

#include "cli/arguments.h"
#include "cli/diagnostics.h"

enum {
    ID_PID = 'p',
    ID_VERBOSE = 'v',
    ID_QUIET = 'q',
    ID_CORE = 256,
    ID_SNAPSHOT,
    ID_TID,
    ID_LIMIT,
    ID_NO_STOP,
    ID_INTERRUPT,
    ID_TOGETHER,
    ID_NO_NAMES,
    ID_RAW,
    ID_GROUP,
    ID_JSON,
    ID_DEBUG_ROOT,
    ID_SYSROOT,
    ID_CACHE,
    ID_NO_CACHE,
    ID_TABLES_URL,
    ID_TABLES_KEY,
    ID_TABLES_UNSIGNED,
    ID_DEBUGINFOD,
};

enum { LIMIT_DEFAULT = 256, LIMIT_MAX = 1000000 };

static const char help[] =
    "Usage: qut stack -p PID | --core FILE [EXE] | --snapshot DIR\n\n"
    "Prints the stack of each thread of a process, of a core file, or of a directory as AOSP's offline\n"
    "unwinding tests have them. One line a frame:   #NN pc ADDRESS  MODULE (FUNCTION+OFFSET)\n\n"
    "Each thread is stopped by itself, for the microseconds that reading its stack takes; --together\n"
    "stops all first, so that their stacks are of one moment. What can be done before or after that is.\n"
    "Threads in a system call that would return EINTR because of that (write, timed epoll_wait, ...) are not\n"
    "stopped: their stacks are read while they sleep, without their registers, which now and then is not\n"
    "enough. --interrupt stops them too.\n\n"
    "Of a core file or snapshot of another machine the files may be missing: --sysroot has them, or --tables-url and\n"
    "--debuginfod ask servers, which learn the build-ids. Files that are at hand come first, always.\n\n"
    "A stack that does not reach its outermost frame says why in a line \"end:\". That is no failure: exit\n"
    "status 1 means that no thread could be walked at all, or that the process was gone.\n\n"
    "Example: qut stack -p 1234\n"
    "         qut stack --core core --debuginfod\n";

static const struct cli_argument arguments[] = {
    {"pid", "PID", ID_PID, 0, "a live process"},
    {"core", "FILE", ID_CORE, 0, "a core file; EXE: the program, if it is not where the core says"},
    {"snapshot", "DIR", ID_SNAPSHOT, 0, "a directory with maps.txt, regs.txt, stack*.data and the mapped files"},
    {"tid", "TID", ID_TID, 0, "this thread only"},
    {"limit", "N", ID_LIMIT, 0, "at most N frames of each thread (default: 256)"},
    {"no-stop", NULL, ID_NO_STOP, 0, "stop nothing: only threads that sleep in a system call"},
    {"together", NULL, ID_TOGETHER, 0, "stop all threads, walk them, let them go: stacks of one moment"},
    {"interrupt", NULL, ID_INTERRUPT, 0, "stop threads also where their system call returns EINTR then"},
    {"group", NULL, ID_GROUP, 0, "threads with the same stack together"},
    {"no-names", NULL, ID_NO_NAMES, 0, "no function names"},
    {"raw", NULL, ID_RAW, 0, "function names as in the files, not as C++ or Rust"},
    {"debug-root", "DIR", ID_DEBUG_ROOT, 0, "where separate debug files are (/usr/lib/debug; of a snapshot: nowhere)"},
    {"sysroot", "DIR", ID_SYSROOT, 0, "open the files of modules below DIR: a core of another machine"},
    {"cache", "DIR", ID_CACHE, 0,
     "where tables are kept ($QUT_CACHE, else $XDG_CACHE_HOME/qut/tables, else ~/.cache/qut/tables)"},
    {"no-cache", NULL, ID_NO_CACHE, 0, "make all tables anew, and keep none"},
    {"tables-url", "URL", ID_TABLES_URL, 0,
     "of modules whose file is not at hand, or says nothing: ask this server (qutc compile --layout) for the table; "
     "may be given again"},
    {"tables-key", "FILE", ID_TABLES_KEY, 0, "PEM file of the public key that the server's indexes are signed with"},
    {"tables-unsigned", NULL, ID_TABLES_UNSIGNED, 0, "believe the server instead"},
    {"debuginfod", NULL, ID_DEBUGINFOD, 0,
     "ask $DEBUGINFOD_URLS for the file of such modules, and for symbols where functions have no name"},
    {"json", NULL, ID_JSON, 0, "one JSON document (docs/qut-stack.md)"},
    {"verbose", NULL, ID_VERBOSE, 0, "on standard error: how long threads were stopped, tables made"},
    {"quiet", NULL, ID_QUIET, 0, "no remarks on standard error, errors only"},
    {"help", NULL, CLI_ID_HELP, 0, "this text"},
};

enum { ARGUMENT_COUNT = sizeof arguments / sizeof *arguments };
static_assert((int)ARGUMENT_COUNT <= (int)CLI_ARGUMENTS_MAX, "the table of getopt has room for them");

static int take_id(const char *option, const char *value, int *id)
{
    long number;
    if (!cli_number(value, 1, INT_MAX, &number))
        return cli_bad_value(option, value, "a number from 1 on");
    *id = (int)number;
    return 0;
}

static int take_limit(struct stack_options *options, const char *value)
{
    long number;
    if (!cli_number(value, 1, LIMIT_MAX, &number))
        return cli_bad_value("limit", value, "a number from 1 to 1000000");
    options->limit = (size_t)number;
    return 0;
}

static int take_url(struct stack_options *options, const char *value)
{
    if (options->url_count == ELSEWHERE_URLS_MAX)
        return cli_bad_value("tables-url", value, "one of at most 16 servers");
    options->urls[options->url_count++] = value;
    return 0;
}

static int take_option(void *context, int id, const char *value)
{
    struct stack_options *options = context;
    switch (id) {
    case ID_PID: return take_id("pid", value, &options->pid);
    case ID_TID: return take_id("tid", value, &options->tid);
    case ID_LIMIT: return take_limit(options, value);
    case ID_CORE: options->core = value; return 0;
    case ID_SNAPSHOT: options->snapshot = value; return 0;
    case ID_NO_STOP: options->no_stop = true; return 0;
    case ID_INTERRUPT: options->interrupt = true; return 0;
    case ID_TOGETHER: options->together = true; return 0;
    case ID_NO_NAMES: options->no_names = true; return 0;
    case ID_RAW: options->raw_names = true; return 0;
    case ID_GROUP: options->group = true; return 0;
    case ID_JSON: options->json = true; return 0;
    case ID_DEBUG_ROOT: options->debug_root = value; return 0;
    case ID_SYSROOT: options->sysroot = value; return 0;
    case ID_CACHE: options->cache = value; return 0;
    case ID_NO_CACHE: options->no_cache = true; return 0;
    case ID_TABLES_URL: return take_url(options, value);
    case ID_TABLES_KEY: options->key = value; return 0;
    case ID_TABLES_UNSIGNED: options->is_unsigned = true; return 0;
    case ID_DEBUGINFOD: options->debuginfod = true; return 0;
    case ID_VERBOSE: options->verbose = true; return 0;
    case ID_QUIET: options->quiet = true; return 0;
    default: return -1;
    }
}

static int refuse(const char *name, const char *why)
{
    cli_report(stderr, name, "%s", why);
    return cli_usage_error("stack");
}

static int check(const struct stack_options *options)
{
    int targets = (options->pid != 0) + (options->core != NULL) + (options->snapshot != NULL);
    if (targets == 0)
        return refuse("stack", "needs -p PID, --core FILE or --snapshot DIR");
    if (targets > 1)
        return refuse("stack", "one of -p, --core and --snapshot, not several");
    if (options->no_stop && !options->pid)
        return refuse("--no-stop", "is for a live process (-p)");
    if (options->interrupt && !options->pid)
        return refuse("--interrupt", "is for a live process (-p)");
    if (options->interrupt && options->no_stop)
        return refuse("--interrupt", "contradicts --no-stop");
    if (options->together && !options->pid)
        return refuse("--together", "is for a live process (-p)");
    if (options->together && options->no_stop)
        return refuse("--together", "contradicts --no-stop");
    if (options->cache && options->no_cache)
        return refuse("--no-cache", "contradicts --cache");
    if (options->url_count && !options->key && !options->is_unsigned)
        return refuse("--tables-url", "needs --tables-key FILE, or --tables-unsigned: a build-id is no proof");
    if (options->key && options->is_unsigned)
        return refuse("--tables-unsigned", "contradicts --tables-key");
    if ((options->key || options->is_unsigned) && !options->url_count)
        return refuse(options->key ? "--tables-key" : "--tables-unsigned", "is for --tables-url");
    return CLI_GO_ON;
}

int stack_options_parse(struct stack_options *options, int argc, char **argv)
{
    *options = (struct stack_options){.limit = LIMIT_DEFAULT};
    const struct cli_parser parser = {.command = "stack",
                                      .help = help,
                                      .arguments = arguments,
                                      .argument_count = ARGUMENT_COUNT,
                                      .take = take_option,
                                      .context = options};
    int first;
    int status = cli_parse(&parser, argc, argv, &first);
    if (status != CLI_GO_ON)
        return status;
    if (options->core && first < argc)
        options->exe = argv[first++];
    if (first < argc)
        return refuse(argv[first], "one argument too many");
    // A snapshot has all its files: what it says does not depend on what is installed here.
    if (!options->debug_root && !options->snapshot)
        options->debug_root = "/usr/lib/debug";
    return check(options);
}
