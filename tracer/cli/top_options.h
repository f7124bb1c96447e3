// SPDX-License-Identifier: Apache-2.0
// What `qut top` is told.
#ifndef TRACER_CLI_TOP_OPTIONS_H
#define TRACER_CLI_TOP_OPTIONS_H

#include <stdbool.h>
#include <stdint.h>

#include "tracer/top/screen.h"

enum { TOP_RECORD_ARGUMENTS_MAX = 32 };

struct top_options {
    struct top_wanted shown;
    const char *path;           // where the recording is kept; NULL: nowhere
    const char *command_output; // NULL: the end of it is shown if it fails
    uint64_t interval_ns;
    int batch;     // screens to print as text; 0: until the end
    bool is_batch; // not on a terminal's screen
    bool json, has_sync;
    char **command; // with a NULL at the end; NULL: -p
    int pid;
    // For qut record, without its name, its file and its command.
    const char *record[TOP_RECORD_ARGUMENTS_MAX];
    int record_count;
};

// CLI_GO_ON, or an exit status.
int cli_top_options_parse(struct top_options *options, int argc, char **argv);

#endif
