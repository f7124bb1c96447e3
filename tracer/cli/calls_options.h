// SPDX-License-Identifier: Apache-2.0
// What `qut trace` is told, and what it says.
#ifndef TRACER_CLI_CALLS_OPTIONS_H
#define TRACER_CLI_CALLS_OPTIONS_H

#include "tracer/cli/record_options.h"
#include "tracer/record/record.h"
#include "tracer/traced/traced.h"

enum { CALLS_RECORD_ARGUMENTS_MAX = 32, CALLS_PATTERNS_MAX = 256, CALLS_RING_BYTES = 4 << 20 };

struct calls_options {
    struct traced_options traced; // its patterns are in `patterns`
    const char *patterns[CALLS_PATTERNS_MAX];
    uint64_t ring_bytes;
    bool list;         // what would be traced; nothing is
    bool lists_probes; // of qut probe: by what they are declared as, where debug information says so
    bool has_ticks;    // samples beside
    char **command;    // NULL: -p
    int pid;
    const char *cache_directory; // of plans, for --list; NULL: the usual one
    bool no_cache;
    // For qut record, which has the rest of the options, without its name and its command.
    const char *record[CALLS_RECORD_ARGUMENTS_MAX];
    int record_count;
};

// CLI_GO_ON, or an exit status.
int cli_calls_options_parse(struct calls_options *options, int argc, char **argv);

// For qut record, which says itself what is wrong with a value.
int cli_calls_pass(struct calls_options *options, const char *name, const char *value);
// What is left to say is what qut record is told. CLI_GO_ON, or an exit status. (cmd_trace.c)
int cli_calls_record_options(const struct calls_options *options, const char *name,
                             struct record_command_options *record, int argc, char **argv);

// Every file that the process executes; or the command's and those of the libraries that it is linked with, before it
// is started. An exit status, and it was said why. (calls_list.c)
int cli_calls_files(const struct calls_options *options, void (*take)(void *context, const char *path), void *context);
// From the cache that the options say.
struct calls_plan;
int cli_calls_plan(const struct calls_options *options, const char *path, const char *module, struct calls_plan **plan,
                   struct base_error *error);

// --list: what would be traced, and how. An exit status. (calls_list.c)
int cli_calls_list(const struct calls_options *options);

// Of a pattern that no function fits, what may be meant by it: ": did you mean ...?", or "". Looks at the files that
// cli_calls_files has; blocks, allocates. (calls_list.c)
struct calls_hint {
    char text[80];
};
const char *cli_calls_hint(const struct calls_options *options, const char *text, struct calls_hint *hint);

// The end, on standard error (calls_summary.c). Returns whether the trace is whole: all that was asked for was traced,
// and all was put back. What is missing is said even if options->quiet.
bool cli_calls_summary(const struct record_command_options *options, const struct record_result *result);

#endif
