// SPDX-License-Identifier: Apache-2.0
// A program that is a family of commands: finds the one asked for, and answers for standard output at the end.
#ifndef CLI_COMMANDS_H
#define CLI_COMMANDS_H

#include <stddef.h>

// Each is in a file of its own, cmd_NAME.c, as command_NAME; the program's meson.build names it.
struct cli_command {
    const char *name;
    const char *summary; // one line
    // argv[0] is the command's name; returns an exit status.
    int (*run)(const struct cli_command *command, int argc, char **argv);
    const void *usage; // what `run` makes of it
};

struct cli_program {
    const char *about; // one line
    const char *example;
    const struct cli_command *const *commands; // in the order of the help; NULL is behind the last
};

// What main returns.
int cli_main(const struct cli_program *program, int argc, char **argv);

#endif
