// SPDX-License-Identifier: Apache-2.0
// -o FILE: the recording that a script runs beside is kept, and the script's values are put behind it, as one more
// process's: until then they are in FILE.parts.
#ifndef TRACER_CLI_PROBE_PROBE_OUTPUT_H
#define TRACER_CLI_PROBE_PROBE_OUTPUT_H

#include <limits.h>

#include "tracer/cli/record_options.h"
#include "tracer/probing/probing.h"

struct probe_output {
    const char *path; // NULL: nothing is kept
    struct probing *probing;
    char part[PATH_MAX + 64]; // with the values
    int fd;                   // of FILE; -1: it was never there
    bool has_failed;          // there are no values, which was said
};

// The recording is to tell of its file. *output stays where it is.
void cli_probe_output_begin(struct probe_output *output, const char *path);
void cli_probe_output_join(struct probe_output *output, struct probing *probing, struct record_command_options *record);
bool cli_probe_output_is_open(const struct probe_output *output);
// All is over. What is missing in the file is said, and what is in it unless `quiet`. An exit status.
int cli_probe_output_end(struct probe_output *output, const struct probing_track_result *result, bool quiet);

#endif
