// SPDX-License-Identifier: Apache-2.0
#include "cli/arguments.h"
#include "cli/commands.h"
#include "tracer/cli/record_go.h"

static int record_command(const struct cli_command *command, int argc, char **argv)
{
    (void)command;
    struct record_command_options options;
    int status = cli_record_options_parse(&options, argc, argv);
    return status == CLI_GO_ON ? cli_record_go(&options) : status;
}

const struct cli_command command_record = {"record", "sample a command, or a process that runs, to a trace",
                                           record_command, NULL};
