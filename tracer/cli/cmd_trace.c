// SPDX-License-Identifier: Apache-2.0
#include <stdlib.h>

#include "cli/arguments.h"
#include "cli/commands.h"
#include "cli/diagnostics.h"
#include "tracer/cli/calls_options.h"
#include "tracer/cli/record_go.h"
#include "tracer/traced/clock.h"

enum { OPTIONS_MAX = CALLS_RECORD_ARGUMENTS_MAX + 4 };

int cli_calls_record_options(const struct calls_options *options, const char *name,
                             struct record_command_options *record, int argc, char **argv)
{
    const size_t command_count = options->command ? (size_t)(argv + argc - options->command) : 0;
    char **arguments = calloc(OPTIONS_MAX + command_count, sizeof *arguments);
    int count = 0;
    if (!arguments) {
        cli_report(stderr, name, "no memory");
        return CLI_BAD;
    }
    arguments[count++] = argv[0];
    for (int i = 0; i < options->record_count; i++)
        arguments[count++] = (char *)options->record[i];
    arguments[count++] = "--";
    for (size_t i = 0; i < command_count; i++)
        arguments[count++] = options->command[i];
    const int status = cli_record_options_parse(record, count, arguments);
    record->command = options->command; // the array of ours goes
    free(arguments);
    return status;
}

static int trace_command(const struct cli_command *command, int argc, char **argv)
{
    (void)command;
    struct calls_options options;
    struct record_command_options record;
    int status = cli_calls_options_parse(&options, argc, argv);
    if (status != CLI_GO_ON)
        return status;
    if (options.list)
        return cli_calls_list(&options);
    if (!traced_is_possible()) {
        cli_report(stderr, "trace",
                   "not in this build: it is for x86-64, with the decoder that -Dzydis=enabled asks for");
        return CLI_BAD;
    }
    status = cli_calls_record_options(&options, "trace", &record, argc, argv);
    if (status != CLI_GO_ON)
        return status;
    record.calls = &options.traced;
    record.asked = &options;
    record.settings.call_ring_bytes = options.ring_bytes;
    record.settings.traps = options.traced.traps;
    return cli_record_go(&record);
}

const struct cli_command command_trace = {"trace", "record every call of chosen functions, exactly", trace_command,
                                          NULL};
