// SPDX-License-Identifier: Apache-2.0
// The qut command.
#include "cli/commands.h"

#define COMMAND(name) extern const struct cli_command command_##name;
#include "tracer/cli/command_list.h"
#undef COMMAND

#define COMMAND(name) &command_##name,
static const struct cli_command *const commands[] = {
#include "tracer/cli/command_list.h"
    NULL};

const char cli_program[] = "qut";

int main(int argc, char **argv)
{
    const struct cli_program program = {.about = "Where programs are, and where they were.",
                                        .example = "qut record -- sort -n numbers.txt",
                                        .commands = commands};
    return cli_main(&program, argc, argv);
}
