// SPDX-License-Identifier: Apache-2.0
// `qut record` where the agent is not: a process that is sampled from outside.
#ifndef TRACER_RECORD_OUTSIDE_H
#define TRACER_RECORD_OUTSIDE_H

#include "tracer/record/program.h"
#include "tracer/record_options.h"

// Return the exit status.
int record_outside_process(const struct record_command_options *options);
int record_outside_command(const struct record_command_options *options, const struct program *program);

#endif
