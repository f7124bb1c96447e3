// SPDX-License-Identifier: Apache-2.0
// The functions that a script's places mean, as they are known before it runs: of the files of a command, or of a
// process. Blocks, allocates; files are read when a script asks, and not before.
#ifndef TRACER_CLI_PROBE_PROBE_FUNCTIONS_H
#define TRACER_CLI_PROBE_PROBE_FUNCTIONS_H

#include "tracer/cli/calls_options.h"
#include "tracer/probe/explain.h"
#include "tracer/probe/script.h"
#include "tracer/prototypes/set.h"
#include "tracer/traced/probe.h"

struct probe_functions {
    struct calls_options *calls; // the command, or the process; its patterns get those that were asked about
    bool is_known;               // which files there are
    int status;                  // CLI_OK, or why that is not known, and it was said
    struct {
        BASE_VECTOR(struct probe_file);
    } files;
    struct {
        BASE_VECTOR(struct traced_asked);
    } asked;
    struct prototypes_set *set;
    struct probe_resolver nothing; // where there is neither
};

// Where this pattern is among those of the recording. Texts stay where they are.
size_t cli_probe_pattern(struct calls_options *calls, const char *text);

// For probe_compile_with. NULL: no memory. Lives as long as *functions, which does not move.
struct probe_resolver *cli_probe_functions_begin(struct probe_functions *functions, struct calls_options *calls);
// How many functions each place of a script means, of those that can be probed: malloc's; NULL, with
// functions->status: that is not known.
struct probe_counts *cli_probe_functions_count(struct probe_functions *functions, const struct probe_script *script);
// What the recording has to know so that a program which asks runs in these functions only. Until the end.
void cli_probe_functions_tell(struct probe_functions *functions, const struct probe_script *script,
                              struct traced_probe *probe);
void cli_probe_functions_end(struct probe_functions *functions);

#endif
