// SPDX-License-Identifier: Apache-2.0
#include "qutc/cli/options.h"

#include <assert.h>
#include <limits.h>
#include <sched.h>
#include <string.h>

#include "cli/arguments.h"
#include "qutc/check/verify.h"
#include "qutc/shelf/shelf.h"

enum option_id {
    ID_OUTPUT = 'o',
    ID_JOBS = 'j',
    ID_QUIET = 'q',
    ID_SMALL = 256,
    ID_JSON,
    ID_FORCE,
    ID_ALL,
    ID_SYSTEM,
    ID_PID,
    ID_DEBUG_ROOT,
    ID_NO_DEBUG_FILES,
    ID_AGAINST,
    ID_TABLE,
    ID_CPU_SHARE,
    ID_MEMORY,
    ID_BUDGET,
    ID_MAX_AGE,
    ID_FILL,
    ID_NO_FILL,
    ID_CHECK,
    ID_AS_STATED,
    ID_LAYOUT,
    ID_SIGN,
    ID_URL,
    ID_KEY,
    ID_UNSIGNED,
    ID_TIMEOUT,
};

static const struct cli_argument arguments[] = {
    {"output", "PATH", ID_OUTPUT, CLI_OPT_OUTPUT, "where to write"},
    {"jobs", "N", ID_JOBS, CLI_OPT_JOBS, "work on N files at a time (default: one per processor)"},
    {"small", NULL, ID_SMALL, CLI_OPT_SMALL, "fewer bytes for a slightly slower lookup"},
    {"fill", NULL, ID_FILL, CLI_OPT_FILL,
     "follow all code that nothing describes, however long it takes (default: until much was in vain)"},
    {"no-fill", NULL, ID_NO_FILL, CLI_OPT_FILL, "follow none of it: what no unwind information describes is a hole"},
    {"check", NULL, ID_CHECK, CLI_OPT_FILL,
     "follow all code, and where it proves that unwind information is wrong, take the code's word"},
    {"as-stated", NULL, ID_AS_STATED, CLI_OPT_FILL, "take unwind information's word everywhere"},
    {"system", NULL, ID_SYSTEM, CLI_OPT_SYSTEM, "all that the loader's paths and $PATH reach, and the vdso"},
    {"pid", "PID", ID_PID, CLI_OPT_SYSTEM, "what a live process has mapped, its vdso included"},
    {"against", "READER", ID_AGAINST, CLI_OPT_AGAINST, "libdw, libdwarf, readelf or all (default)"},
    {"table", "FILE", ID_TABLE, CLI_OPT_TABLE, "check this table of the one ELF, instead of a fresh one"},
    {"cpu-share", "PERCENT", ID_CPU_SHARE, CLI_OPT_WARM_UP, "of one processor: sleep after each file (default: 100)"},
    {"memory", "SIZE", ID_MEMORY, CLI_OPT_WARM_UP, "leave out files that would take more (SIZE: 500K, 64M, 1G)"},
    {"budget", "SIZE", ID_BUDGET, CLI_OPT_WARM_UP, "drop the oldest tables where all take more than this"},
    {"max-age", "DAYS", ID_MAX_AGE, CLI_OPT_WARM_UP, "drop tables that no warm-up has needed for so long"},
    {"layout", "DIR", ID_LAYOUT, CLI_OPT_LAYOUT, "put tables by build-id into DIR, for a web server or a bucket"},
    {"sign", "KEY", ID_SIGN, CLI_OPT_LAYOUT, "sign DIR's indexes: PEM file of a private Ed25519 key"},
    {"url", "URL", ID_URL, CLI_OPT_FETCH,
     "of a server with such a DIR; may be given again: the first that has a table"},
    {"key", "KEY", ID_KEY, CLI_OPT_FETCH, "who has to have signed the index: PEM file of a public Ed25519 key"},
    {"unsigned", NULL, ID_UNSIGNED, CLI_OPT_FETCH, "believe the server instead"},
    {"timeout", "SECONDS", ID_TIMEOUT, CLI_OPT_FETCH, "of each request (2)"},
    {"all", NULL, ID_ALL, CLI_OPT_ALL, "holes too"},
    {"force", NULL, ID_FORCE, CLI_OPT_FORCE, "also what the cache has already"},
    {"debug-root", "DIR", ID_DEBUG_ROOT, CLI_OPT_DEBUG_FILES, "where separate debug files are (/usr/lib/debug)"},
    {"no-debug-files", NULL, ID_NO_DEBUG_FILES, CLI_OPT_DEBUG_FILES, "look for none"},
    {"json", NULL, ID_JSON, CLI_OPT_JSON, "results as a JSON array"},
    {"quiet", NULL, ID_QUIET, CLI_OPT_QUIET, "no progress, and only what was asked for"},
    {"help", NULL, CLI_ID_HELP, 0, "this text"},
};

enum { ARGUMENT_COUNT = sizeof arguments / sizeof *arguments };
static_assert((int)CLI_URLS_MAX == (int)SHELF_URLS_MAX, "all are asked");
static_assert((int)ARGUMENT_COUNT <= (int)CLI_ARGUMENTS_MAX, "the table of getopt has room for them");

static unsigned processors(void)
{
    cpu_set_t set;
    if (sched_getaffinity(0, sizeof set, &set) != 0)
        return 1;
    int count = CPU_COUNT(&set);
    return count < 1 ? 1 : count > CLI_JOBS_MAX ? CLI_JOBS_MAX : (unsigned)count;
}

static const struct {
    const char *name;
    unsigned mask;
} judges[] = {{"libdw", CHECK_JUDGE_LIBDW},
              {"libdwarf", CHECK_JUDGE_LIBDWARF},
              {"readelf", CHECK_JUDGE_READELF},
              {"all", CHECK_JUDGES_ALL}};
enum { JUDGE_NAMES = sizeof judges / sizeof *judges };

static int take_judges(struct cli_options *options, const char *name)
{
    for (size_t i = 0; i < JUDGE_NAMES; i++) {
        if (strcmp(judges[i].name, name) == 0) {
            options->judges = judges[i].mask;
            return 0;
        }
    }
    return cli_bad_value("against", name, "libdw, libdwarf, readelf or all");
}

static const char *word_of(int id, size_t index)
{
    return id == ID_AGAINST && index < JUDGE_NAMES ? judges[index].name : NULL;
}

static int take_pid(struct cli_options *options, const char *text)
{
    long number;
    if (!cli_number(text, 1, INT_MAX, &number))
        return cli_bad_value("pid", text, "a process id");
    if (options->pid_count == CLI_PIDS_MAX)
        return cli_bad_value("pid", text, "too many processes");
    options->pids[options->pid_count++] = (int)number;
    return 0;
}

static int take_jobs(struct cli_options *options, const char *text)
{
    long number;
    if (!cli_number(text, 1, CLI_JOBS_MAX, &number))
        return cli_bad_value("jobs", text, "a number from 1 to 256");
    options->jobs = (unsigned)number;
    return 0;
}

static int take_size(const char *option, const char *text, uint64_t *bytes)
{
    char number[24];
    size_t size = strlen(text);
    const char *units = "KMG", *unit = size ? strchr(units, text[size - 1]) : NULL;
    long count;
    snprintf(number, sizeof number, "%.*s", (int)(size < 20 ? size : 20) - (unit ? 1 : 0), text);
    if (size >= 20 || !cli_number(number, 1, 1 << 30, &count))
        return cli_bad_value(option, text, "a size like 500K, 64M or 1G");
    *bytes = (uint64_t)count << (unit ? 10 * (unit - units + 1) : 0);
    return 0;
}

static int take_bounded(const char *option, const char *text, long most, const char *wanted, long *number)
{
    return cli_number(text, 1, most, number) ? 0 : cli_bad_value(option, text, wanted);
}

static int take_warm_up(struct cli_options *options, int id, const char *text)
{
    long number = 0;
    int result = -1;
    if (id == ID_MEMORY)
        return take_size("memory", text, &options->memory_bytes);
    if (id == ID_BUDGET)
        return take_size("budget", text, &options->budget_bytes);
    if (id == ID_CPU_SHARE) {
        result = take_bounded("cpu-share", text, 100, "a number from 1 to 100", &number);
        options->cpu_share_percent = (unsigned)number;
    } else {
        result = take_bounded("max-age", text, 36500, "a number of days, from 1", &number);
        options->max_age_seconds = (uint64_t)number * 24 * 3600;
    }
    return result;
}

static int take_url(struct cli_options *options, const char *text)
{
    if (options->url_count == CLI_URLS_MAX)
        return cli_bad_value("url", text, "too many servers");
    options->urls[options->url_count++] = text;
    return 0;
}

static int take_timeout(struct cli_options *options, const char *text)
{
    long seconds;
    if (!cli_number(text, 1, 3600, &seconds))
        return cli_bad_value("timeout", text, "a number of seconds, from 1 to 3600");
    options->timeout_ms = (unsigned)seconds * 1000;
    return 0;
}

static int take_option(void *context, int id, const char *value)
{
    struct cli_options *options = context;
    switch (id) {
    case ID_OUTPUT: options->output = value; return 0;
    case ID_JOBS: return take_jobs(options, value);
    case ID_PID: return take_pid(options, value);
    case ID_AGAINST: return take_judges(options, value);
    case ID_CPU_SHARE:
    case ID_MEMORY:
    case ID_BUDGET:
    case ID_MAX_AGE: return take_warm_up(options, id, value);
    case ID_TABLE: options->table = value; return 0;
    // The cache knows a table by its file, not by what else it was made from.
    case ID_DEBUG_ROOT:
        options->image.debug_root = value;
        options->force = true;
        return 0;
    case ID_NO_DEBUG_FILES:
        options->image.debug_root = NULL;
        options->force = true;
        return 0;
    case ID_FILL:
    case ID_NO_FILL:
        options->fill = id == ID_FILL ? CODE_FILL_ALL : CODE_FILL_NOTHING;
        options->force = true;
        return 0;
    case ID_CHECK:
        options->check = true;
        options->force = true;
        return 0;
    case ID_AS_STATED:
        options->as_stated = true;
        options->force = true;
        return 0;
    case ID_LAYOUT: options->layout = value; return 0;
    case ID_SIGN: options->sign = value; return 0;
    case ID_URL: return take_url(options, value);
    case ID_KEY: options->key = value; return 0;
    case ID_UNSIGNED: options->is_unsigned = true; return 0;
    case ID_TIMEOUT: return take_timeout(options, value);
    case ID_SMALL: options->small = true; return 0;
    case ID_QUIET: options->quiet = true; return 0;
    case ID_JSON: options->json = true; return 0;
    case ID_FORCE: options->force = true; return 0;
    case ID_ALL: options->all = true; return 0;
    case ID_SYSTEM: options->system = true; return 0;
    default: return -1;
    }
}

static int check_operands(const struct cli_command *command, const struct cli_options *options)
{
    const struct cli_usage *usage = command->usage;
    int count = options->operand_count + (options->system ? 1 : 0) + (int)options->pid_count;
    if (count < usage->operands_min) {
        cli_report(stderr, command->name, "too few arguments");
        return cli_usage_error(command->name);
    }
    if (usage->operands_max >= 0 && options->operand_count > usage->operands_max) {
        cli_report(stderr, options->operands[usage->operands_max], "one argument too many");
        return cli_usage_error(command->name);
    }
    return CLI_OK;
}

int cli_run(const struct cli_command *command, int argc, char **argv)
{
    const struct cli_usage *usage = command->usage;
    struct cli_options options = {
        .command = command->name,
        .jobs = processors(),
        .fill = CODE_FILL_BOUNDED,
        .judges = CHECK_JUDGES_ALL,
        .timeout_ms = SHELF_TIMEOUT_MS,
        .image = {.debug_root = "/usr/lib/debug"},
    };
    const struct cli_parser parser = {.command = command->name,
                                      .help = usage->help,
                                      .arguments = arguments,
                                      .argument_count = ARGUMENT_COUNT,
                                      .set = usage->option_set,
                                      .take = take_option,
                                      .context = &options,
                                      .word = word_of};
    int first;
    int status = cli_parse(&parser, argc, argv, &first);
    if (status != CLI_GO_ON)
        return status;
    options.operands = argv + first;
    options.operand_count = argc - first;
    status = check_operands(command, &options);
    return status == CLI_OK ? usage->run(&options) : status;
}
