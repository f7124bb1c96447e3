// SPDX-License-Identifier: Apache-2.0
// What the commands have in common that make a file of a trace: read it, say what is missing in it, look its names up,
// and write the new file, which is there when it is whole.
#ifndef TRACER_CLI_TRACE_OUTPUT_H
#define TRACER_CLI_TRACE_OUTPUT_H

#include "tracer/cli/trace_options.h"
#include "tracer/export/sink/sink.h"

struct trace_job {
    const struct trace_options *options; // one file, or several that are one trace
    const char *extension;               // of OUT, where it is not said
    bool is_binary;                      // nothing for a terminal
    bool is_gzip;                        // the sink is to be compressed
    bool is_folder;                      // OUT is one, in which `write` makes files: `sink` is NULL
    const char *out;                     // set before `write`
    // Returns 0, or -1 with *error filled. Write errors are the sink's.
    int (*write)(const struct trace_job *job, const struct trace *trace, const struct names *names, struct sink *sink,
                 struct base_error *error);
    // Before OUT is opened: chooses what of the trace is written. 0; -1 with *error filled; or an exit status, where it
    // has said why. NULL: all.
    int (*select)(struct trace_job *job, const struct trace *trace, struct base_error *error);
    struct selection selection; // whoever selects frees it
};

// With progress, and what has no names said. NULL, *error filled.
struct names *cli_trace_names(const struct trace *trace, const struct trace_options *options, struct base_error *error);

bool cli_is_same_file(const char *a, const char *b); // both are there

// Returns an exit status: CLI_NO where the trace is incomplete, CLI_BAD where OUT was not written.
int cli_trace_command_run(struct trace_job *job);

#endif
