// SPDX-License-Identifier: Apache-2.0
// What `qut record` says while it records, and at the end: on standard error.
#ifndef TRACER_CLI_RECORD_SHOW_H
#define TRACER_CLI_RECORD_SHOW_H

#include <stdbool.h>

#include "tracer/cli/record_options.h"
#include "tracer/cli/record_top.h"
#include "tracer/record/record.h"

struct record_show {
    bool is_shown, is_drawn; // the status line
    uint64_t hits_before, ns_before;
    uint64_t per_second;
};

void cli_record_show_begin(struct record_show *show, bool quiet);
// As record_options.status, with a struct record_show as context.
void cli_record_show_status(void *context, const struct record_status *status);
// The line is empty again: before anything else is written there.
void cli_record_show_clear(struct record_show *show);

// Processes that are not followed, and why. False: there are none.
bool cli_record_show_left(const char *path, const struct record_result *result);
// own NULL: not known.
void cli_record_show_summary(const struct record_command_options *options, const struct record_result *result,
                             const struct record_own *own);

enum { RECORD_ROOTS_BYTES = 40 };
// ", 99.98 % of them to the root"; "" where there are no samples. Returns the text.
const char *cli_record_show_roots(char text[RECORD_ROOTS_BYTES], uint64_t roots, uint64_t samples);

#endif
