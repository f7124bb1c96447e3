// SPDX-License-Identifier: Apache-2.0
#include "cli/commands.h"
#include "cli/report.h"
#include "tracer/stack.h"

const char cli_program[] = "qut";

static const struct cli_listed listed[] = {
    {"stack", "print the stacks of a process, a core file, a snapshot"},
};

static int run(unsigned index, int argc, char **argv)
{
    static int (*const commands[])(int, char **) = {stack_command};
    return commands[index](argc, argv);
}

int main(int argc, char **argv)
{
    const struct cli_commands commands = {.about = "Where programs are, and where they were.",
                                          .example = "qut stack -p 1234",
                                          .listed = listed,
                                          .count = sizeof listed / sizeof *listed,
                                          .run = run};
    return cli_main(&commands, argc, argv);
}
