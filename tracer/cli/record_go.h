// SPDX-License-Identifier: Apache-2.0
// A recording as its options say it, from before it begins to its summary: of `qut record`, and of `qut trace`.
#ifndef TRACER_CLI_RECORD_GO_H
#define TRACER_CLI_RECORD_GO_H

#include "tracer/cli/record_options.h"

// An exit status.
int cli_record_go(struct record_command_options *options);

#endif
