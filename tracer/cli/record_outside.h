// SPDX-License-Identifier: Apache-2.0
// `qut record` where the agent is not: a process that is sampled from outside.
#ifndef TRACER_CLI_RECORD_OUTSIDE_H
#define TRACER_CLI_RECORD_OUTSIDE_H

#include "tracer/cli/record_options.h"
#include "tracer/record/command_file.h"

// Return the exit status.
int cli_record_outside_process(const struct record_command_options *options);
int cli_record_outside_command(const struct record_command_options *options, const struct program *program);

#endif
