// SPDX-License-Identifier: Apache-2.0
#include "qutc/cli/options.h"

static int run_verify(const struct cli_options *options)
{
    cli_report(stderr, options->command,
               "this qutc was built without the independent readers that tables are compared with");
    return CLI_BAD;
}

static const struct cli_usage usage = {
    .run = run_verify,
    .option_set = ~0u,
    .operands_max = -1,
    .help = "Usage: qutc verify\n\nThis qutc was built without it.\n",
};
const struct cli_command command_verify = {"verify", "(not in this build)", cli_run, &usage};
