// SPDX-License-Identifier: Apache-2.0
// Command lines: one table of options a program, of which each command takes its own.
#ifndef CLI_ARGUMENTS_H
#define CLI_ARGUMENTS_H

#include <stdbool.h>
#include <stddef.h>

struct cli_argument {
    const char *name;
    const char *value; // what it takes, for --help; NULL: nothing
    int id;            // a letter where there is a short form
    unsigned set;      // taken by commands with one of these bits; 0: by all
    const char *text;
};

enum { CLI_ARGUMENTS_MAX = 48, CLI_ID_HELP = 'h' };

struct cli_parser {
    const char *command;
    const char *help;     // without the options
    const char *statuses; // the end of --help; NULL: what exit statuses commonly mean
    bool stop_at_operand; // what follows the first operand is no option: the command of another program
    const struct cli_argument *arguments;
    size_t argument_count;
    unsigned set;
    // Takes one option. 0, or -1 where the value is none of its: cli_bad_value has said so.
    int (*take)(void *context, int id, const char *value);
    void *context;
    // The words that an option takes, one by one; NULL behind the last, and for one that takes anything. NULL: none has
    // such words.
    const char *(*word)(int id, size_t index);
};

enum { CLI_GO_ON = -1 };

// Returns CLI_GO_ON, with the operands from argv[*first] on; or an enum cli_status, where --help or bad usage was
// answered.
int cli_parse(const struct cli_parser *parser, int argc, char **argv, int *first);

// Says on stderr where help is; returns CLI_BAD.
int cli_usage_error(const char *command);
// Returns -1.
int cli_bad_value(const char *option, const char *value, const char *wanted);
bool cli_number(const char *text, long least, long most, long *number);

#endif
