// SPDX-License-Identifier: Apache-2.0
// A program that is a family of commands: finds the one asked for, and answers for standard output at the end.
#ifndef CLI_COMMANDS_H
#define CLI_COMMANDS_H

struct cli_listed {
    const char *name;
    const char *summary; // one line
};

struct cli_commands {
    const char *about; // one line
    const char *example;
    const struct cli_listed *listed;
    unsigned count;
    int (*run)(unsigned index, int argc, char **argv); // argv[0] is the command's name; returns an exit status
};

// What main returns.
int cli_main(const struct cli_commands *commands, int argc, char **argv);

#endif
