// SPDX-License-Identifier: Apache-2.0
// The qutc command.
#include "cli/commands.h"

#define COMMAND(name) extern const struct cli_command command_##name;
#include "qutc/cli/command_list.h"
#undef COMMAND

#define COMMAND(name) &command_##name,
static const struct cli_command *const commands[] = {
#include "qutc/cli/command_list.h"
    NULL};

const char cli_program[] = "qutc";

int main(int argc, char **argv)
{
    const struct cli_program program = {.about = "Stack-unwinding tables, compiled ahead of time.",
                                        .example = "qutc compile -o bash.qut /bin/bash && qutc stat bash.qut",
                                        .commands = commands};
    return cli_main(&program, argc, argv);
}
