// SPDX-License-Identifier: Apache-2.0
#include "qutc/cli/options.h"

#include <errno.h>
#include <getopt.h>
#include <limits.h>
#include <sched.h>
#include <stdlib.h>
#include <string.h>

#include "qutc/check/verify.h"

enum option_id {
    ID_HELP = 'h',
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
};

static const struct described_option {
    const char *name;
    const char *argument; // NULL: takes none
    int id;               // a letter where there is a short form
    unsigned set;         // 0: every command's
    const char *text;
} described_options[] = {
    {"output", "PATH", ID_OUTPUT, CLI_OPT_OUTPUT, "where to write"},
    {"jobs", "N", ID_JOBS, CLI_OPT_JOBS, "work on N files at a time (default: one per processor)"},
    {"small", NULL, ID_SMALL, CLI_OPT_SMALL, "fewer bytes for a slightly slower lookup"},
    {"system", NULL, ID_SYSTEM, CLI_OPT_SYSTEM, "all that the loader's paths and $PATH reach, and the vdso"},
    {"pid", "PID", ID_PID, CLI_OPT_SYSTEM, "what a live process has mapped, its vdso included"},
    {"against", "READER", ID_AGAINST, CLI_OPT_AGAINST, "libdw, libdwarf, readelf or all (default)"},
    {"table", "FILE", ID_TABLE, CLI_OPT_TABLE, "check this table of the one ELF, instead of a fresh one"},
    {"all", NULL, ID_ALL, CLI_OPT_ALL, "holes too"},
    {"force", NULL, ID_FORCE, CLI_OPT_FORCE, "compile although the cache has the table"},
    {"debug-root", "DIR", ID_DEBUG_ROOT, CLI_OPT_DEBUG_FILES, "where separate debug files are (/usr/lib/debug)"},
    {"no-debug-files", NULL, ID_NO_DEBUG_FILES, CLI_OPT_DEBUG_FILES, "look for none"},
    {"json", NULL, ID_JSON, CLI_OPT_JSON, "results as a JSON array"},
    {"quiet", NULL, ID_QUIET, CLI_OPT_QUIET, "no progress, and only what was asked for"},
    {"help", NULL, ID_HELP, 0, "this text"},
};

enum { OPTION_COUNT = sizeof described_options / sizeof *described_options };

struct option_table {
    struct option options[OPTION_COUNT + 1];
    char letters[2 * OPTION_COUNT + 2];
};

static bool takes(const struct cli_command *command, const struct described_option *option)
{
    return option->set == 0 || (option->set & command->option_set);
}

static void make_table(const struct cli_command *command, struct option_table *table)
{
    char *letter = table->letters;
    struct option *option = table->options;
    *letter++ = ':';
    for (unsigned i = 0; i < OPTION_COUNT; i++) {
        const struct described_option *described = &described_options[i];
        if (!takes(command, described))
            continue;
        *option++ = (struct option){described->name, described->argument ? required_argument : no_argument, NULL,
                                    described->id};
        if (described->id > UCHAR_MAX)
            continue;
        *letter++ = (char)described->id;
        if (described->argument)
            *letter++ = ':';
    }
    *option = (struct option){0};
    *letter = '\0';
}

static void print_help(const struct cli_command *command)
{
    printf("%s\nOptions:\n", command->help);
    for (unsigned i = 0; i < OPTION_COUNT; i++) {
        const struct described_option *option = &described_options[i];
        if (!takes(command, option))
            continue;
        char left[40];
        bool has_letter = option->id <= UCHAR_MAX;
        snprintf(left, sizeof left, "%c%c%s--%s%s%s", has_letter ? '-' : ' ', has_letter ? option->id : ' ',
                 has_letter ? ", " : "  ", option->name, option->argument ? " " : "",
                 option->argument ? option->argument : "");
        printf("  %-24s %s\n", left, option->text);
    }
    fputs("\nExit status: 0 ok; 1 the answer is no, or the result incomplete; 2 bad usage or input.\n", stdout);
}

static bool parse_number(const char *text, long least, long most, long *number)
{
    char *end;
    errno = 0;
    *number = strtol(text, &end, 10);
    return errno == 0 && end != text && *end == '\0' && *number >= least && *number <= most;
}

static unsigned processors(void)
{
    cpu_set_t set;
    if (sched_getaffinity(0, sizeof set, &set) != 0)
        return 1;
    int count = CPU_COUNT(&set);
    return count < 1 ? 1 : count > CLI_JOBS_MAX ? CLI_JOBS_MAX : (unsigned)count;
}

static int bad_argument(const char *option, const char *argument, const char *wanted)
{
    cli_report(stderr, argument, "not an argument for --%s: %s", option, wanted);
    return -1;
}

static int take_judges(struct cli_options *options, const char *name)
{
    static const struct {
        const char *name;
        unsigned mask;
    } judges[] = {{"libdw", QUTC_JUDGE_LIBDW},
                  {"libdwarf", QUTC_JUDGE_LIBDWARF},
                  {"readelf", QUTC_JUDGE_READELF},
                  {"all", QUTC_JUDGES_ALL}};
    for (size_t i = 0; i < sizeof judges / sizeof *judges; i++) {
        if (strcmp(judges[i].name, name) == 0) {
            options->judges = judges[i].mask;
            return 0;
        }
    }
    return bad_argument("against", name, "libdw, libdwarf, readelf or all");
}

static int take_pid(struct cli_options *options, const char *text)
{
    long number;
    if (!parse_number(text, 1, INT_MAX, &number))
        return bad_argument("pid", text, "a process id");
    if (options->pid_count == CLI_PIDS_MAX)
        return bad_argument("pid", text, "too many processes");
    options->pids[options->pid_count++] = (int)number;
    return 0;
}

static int take_jobs(struct cli_options *options, const char *text)
{
    long number;
    if (!parse_number(text, 1, CLI_JOBS_MAX, &number))
        return bad_argument("jobs", text, "a number from 1 to 256");
    options->jobs = (unsigned)number;
    return 0;
}

static int take_option(struct cli_options *options, int id)
{
    switch (id) {
    case ID_OUTPUT: options->output = optarg; return 0;
    case ID_JOBS: return take_jobs(options, optarg);
    case ID_PID: return take_pid(options, optarg);
    case ID_AGAINST: return take_judges(options, optarg);
    case ID_TABLE: options->table = optarg; return 0;
    // The cache knows a table by its file, not by what else it was made from.
    case ID_DEBUG_ROOT:
        options->image.debug_root = optarg;
        options->force = true;
        return 0;
    case ID_NO_DEBUG_FILES:
        options->image.debug_root = NULL;
        options->force = true;
        return 0;
    case ID_SMALL: options->small = true; return 0;
    case ID_QUIET: options->quiet = true; return 0;
    case ID_JSON: options->json = true; return 0;
    case ID_FORCE: options->force = true; return 0;
    case ID_ALL: options->all = true; return 0;
    case ID_SYSTEM: options->system = true; return 0;
    default: return -1;
    }
}

static int usage_error(const struct cli_command *command)
{
    fprintf(stderr, "qutc: see qutc %s --help\n", command->name);
    return CLI_BAD;
}

// What getopt_long did not take: a letter it does not know is in optopt, a long name in argv.
static int refuse_option(const struct cli_command *command, char **argv, bool lacks_argument)
{
    char letter[3] = {'-', (char)optopt, '\0'};
    bool is_letter = optopt > 0 && optopt <= UCHAR_MAX && argv[optind - 1][1] != '-';
    cli_report(stderr, is_letter ? letter : argv[optind - 1], "%s",
               lacks_argument ? "needs an argument" : "not an option of this command");
    return usage_error(command);
}

static int check_operands(const struct cli_command *command, const struct cli_options *options)
{
    int count = options->operand_count + (options->system ? 1 : 0) + (int)options->pid_count;
    if (count < command->operands_min) {
        cli_report(stderr, command->name, "too few arguments");
        return usage_error(command);
    }
    if (command->operands_max >= 0 && options->operand_count > command->operands_max) {
        cli_report(stderr, options->operands[command->operands_max], "one argument too many");
        return usage_error(command);
    }
    return CLI_OK;
}

int cli_run(const struct cli_command *command, int argc, char **argv)
{
    struct option_table table;
    make_table(command, &table);
    struct cli_options options = {
        .command = command->name,
        .jobs = processors(),
        .judges = QUTC_JUDGES_ALL,
        .image = {.debug_root = "/usr/lib/debug"},
    };
    opterr = 0;
    optind = 1;
    for (int id; (id = getopt_long(argc, argv, table.letters, table.options, NULL)) != -1;) {
        if (id == ID_HELP) {
            print_help(command);
            return CLI_OK;
        }
        if (id == '?' || id == ':')
            return refuse_option(command, argv, id == ':');
        if (take_option(&options, id) != 0)
            return usage_error(command);
    }
    options.operands = argv + optind;
    options.operand_count = argc - optind;
    int status = check_operands(command, &options);
    return status == CLI_OK ? command->run(&options) : status;
}
