// SPDX-License-Identifier: Apache-2.0
// One parser for the options of all commands; each command names those it takes.
#ifndef QUTC_CLI_OPTIONS_H
#define QUTC_CLI_OPTIONS_H

#include <stdbool.h>

#include "cli/commands.h"
#include "cli/diagnostics.h"
#include "qutc/input/image.h"
#include "qutc/qutc.h"

enum cli_option_set {
    CLI_OPT_OUTPUT = 1 << 0,
    CLI_OPT_JOBS = 1 << 1,
    CLI_OPT_SMALL = 1 << 2,
    CLI_OPT_QUIET = 1 << 3,
    CLI_OPT_JSON = 1 << 4,
    CLI_OPT_FORCE = 1 << 5,
    CLI_OPT_ALL = 1 << 6,
    CLI_OPT_SYSTEM = 1 << 7, // --system and --pid
    CLI_OPT_DEBUG_FILES = 1 << 8,
    CLI_OPT_AGAINST = 1 << 9,
    CLI_OPT_TABLE = 1 << 10,
    CLI_OPT_FILL = 1 << 12,
    CLI_OPT_WARM_UP = 1 << 11, // --cpu-share, --memory, --budget, --max-age
    CLI_OPT_LAYOUT = 1 << 13,  // --layout, --sign
    CLI_OPT_FETCH = 1 << 14,   // --url, --key, --unsigned, --timeout
};

enum { CLI_JOBS_MAX = 256, CLI_PIDS_MAX = 64, CLI_URLS_MAX = 16 };

struct cli_options {
    const char *command;
    const char *output;
    unsigned jobs; // never 0
    enum code_fill_extent fill;
    bool small, check, as_stated, quiet, json, force, all, system;
    int pids[CLI_PIDS_MAX];
    unsigned pid_count;
    struct input_image_options image;
    unsigned judges; // mask of enum CHECK_JUDGE_*
    const char *table;
    unsigned cpu_share_percent;
    uint64_t memory_bytes, budget_bytes, max_age_seconds;
    const char *layout, *sign; // a folder for a web server, and who vouches for it
    const char *urls[CLI_URLS_MAX];
    unsigned url_count;
    const char *key;
    bool is_unsigned;
    unsigned timeout_ms;
    char **operands;
    int operand_count;
};

// Of a struct cli_command whose `run` is cli_run.
struct cli_usage {
    int (*run)(const struct cli_options *options); // returns an enum cli_status
    unsigned option_set;                           // enum cli_option_set
    int operands_min;                              // --system and --pid count
    int operands_max;                              // -1: any number
    const char *help;                              // without the options
};

// Parses what follows the command's name and runs it; --help and bad usage are answered here.
int cli_run(const struct cli_command *command, int argc, char **argv);

#endif
