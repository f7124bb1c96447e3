// SPDX-License-Identifier: Apache-2.0
// The end of a recording: for people, and as JSON.
#ifndef TRACER_CLI_RECORD_SUMMARY_H
#define TRACER_CLI_RECORD_SUMMARY_H

#include "tracer/attach/attach.h"
#include "tracer/cli/record_options.h"
#include "tracer/record/record.h"

// The file is finished, or cannot be.
void cli_record_summary_inside(const struct record_command_options *options, const struct record_result *result);
void cli_record_summary_outside(const struct record_command_options *options, const struct attach_result *result);

#endif
