// SPDX-License-Identifier: Apache-2.0
// One input as a table: read from its file, or compiled on the spot.
#ifndef QUTC_CLI_LOAD_TABLE_H
#define QUTC_CLI_LOAD_TABLE_H

#include "qutc/cli/operands.h"
#include "qutc/qutc.h"
#include "qutc/table_file.h"

struct cli_loaded {
    struct qutc_table_file file;
    const struct arch *arch;
    struct input_image *image; // NULL where the table was read from a file
    struct qutc_compile_stats stats;
    uint64_t open_time_ns;
    uint64_t compile_time_ns;
};

int cli_load(const struct cli_options *options, const struct cli_inputs *inputs, size_t index,
             struct cli_loaded *loaded, struct base_error *error);
void cli_unload(struct cli_loaded *loaded);

// The one operand of a command that takes one: errors are reported, the enum cli_status returned.
int cli_load_operand(const struct cli_options *options, const char *path, struct cli_loaded *loaded);

// Compiles an image that is open, and attaches the result.
int cli_load_compile(const struct cli_options *options, struct cli_loaded *loaded, struct base_error *error);
int cli_load_open(const struct cli_options *options, const struct input *input, struct cli_loaded *loaded,
                  struct base_error *error);

#endif
