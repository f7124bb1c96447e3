// SPDX-License-Identifier: Apache-2.0
// A recording as its options say it, from before it begins to its summary: of `qut record`, and of `qut trace`; and
// where the agent is not, of a process that is sampled from outside.
#ifndef TRACER_CLI_RECORD_GO_H
#define TRACER_CLI_RECORD_GO_H

#include "tracer/cli/record_options.h"
#include "tracer/record/command_file.h"

// Return the exit status.
int cli_record_go(struct record_command_options *options);
int cli_record_outside_process(const struct record_command_options *options);
int cli_record_outside_command(const struct record_command_options *options, const struct program *program);

#endif
