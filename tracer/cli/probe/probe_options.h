// SPDX-License-Identifier: Apache-2.0
// What `qut probe` is told.
#ifndef TRACER_CLI_PROBE_PROBE_OPTIONS_H
#define TRACER_CLI_PROBE_PROBE_OPTIONS_H

#include "tracer/cli/calls_options.h"
#include "tracer/probe/parameters.h"

struct probe_options {
    const char *script, *script_path;             // one of them
    const char *parameters[PROBE_PARAMETERS_MAX]; // of the script
    size_t parameter_count;
    bool json, prometheus, quiet;
    const char *output;         // the recording and the script's values are kept there; NULL: they are not
    uint32_t every_ms;          // values go there so often; 0: not said
    bool tells_calls;           // calls of probed functions go there
    const char *samples;        // a second, of each thread; NULL: not said
    uint32_t budget_permille;   // 0: none
    bool interprets;            // no machine code
    bool list_scripts;          // those that come with us
    bool list;                  // the functions of patterns, or of the script
    bool explain;               // what the script would do; nothing is started
    const char *image;          // where the script's programs go; nothing is started. NULL: nowhere
    struct calls_options calls; // the command, the process, and what qut record is told
};

// CLI_GO_ON, or an exit status.
int cli_probe_options_parse(struct probe_options *options, int argc, char **argv);

#endif
