// SPDX-License-Identifier: Apache-2.0
// Values of the options that select a part of a trace. 0, or -1 where the value is none: that has been said.
#ifndef TRACER_CLI_SELECTION_OPTIONS_H
#define TRACER_CLI_SELECTION_OPTIONS_H

#include "tracer/cli/trace_options.h"

int cli_take_pids(struct trace_options *options, const char *value);      // "17,18"
int cli_take_between(struct selection_wanted *wanted, const char *value); // "1.5s,2s", "200ms,"; seconds without a unit

// Whether the options select a part at all.
bool cli_selects_a_part(const struct trace_options *options);
// False: nothing fits what they ask for, which has been said, with what there is.
bool cli_selection_fits(const struct trace_options *options, const char *path, const struct selection *selection);

#endif
