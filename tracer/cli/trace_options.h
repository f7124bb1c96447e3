// SPDX-License-Identifier: Apache-2.0
// Options of the commands that deal with traces: one table, so that the same name means the same in all of them.
#ifndef TRACER_CLI_TRACE_OPTIONS_H
#define TRACER_CLI_TRACE_OPTIONS_H

#include <stdbool.h>
#include <stdint.h>

#include "tracer/export/export.h"
#include "tracer/info/info_tables.h"
#include "tracer/tables/tables.h"

enum trace_command {
    TRACE_COLLECT = 1,
    TRACE_INFO = 2,
    TRACE_EXPORT = 4,
    TRACE_REPORT = 8,
    TRACE_DIFF = 16,
};

enum { TRACE_PIDS_MAX = 64, TRACE_BASES_MAX = 64 };

struct trace_options {
    const char *command;
    char **files; // the operands
    int file_count;
    bool is_together; // several are one trace; they may have labels
    const char *out;  // NULL: not said
    bool quiet;
    // Names.
    const char *debug_root, *system_root;
    bool no_inlines, lines, debuginfod;
    // Export.
    const struct export_format *format;
    int weight; // enum export_weight; -1: as the kind has it
    bool no_slices, no_names;
    struct analysis_labels labels;  // of a folder of tables
    bool has_kind;                  // it was said
    struct selection_wanted wanted; // kind: where it was not said SELECTION_MAIN
    uint32_t pids[TRACE_PIDS_MAX];
    // Collect.
    int pid; // 0: none
    int fd;  // -1: none
    bool follow;
    uint32_t interval_ms; // 0: not said
    // Info.
    bool json;
    struct info_wanted info;
    // Diff.
    const char *bases[TRACE_BASES_MAX];
    int base_count;
    int limit; // of rows; 0: not said
    bool by_amount, check;
    const char *page; // NULL: none
};

// What a command takes that is not said by options: set in *options before. Returns CLI_GO_ON or an exit status.
int cli_trace_options_parse(struct trace_options *options, enum trace_command set, const char *help, int argc,
                            char **argv);
// Without an operand, what qut record made last in this directory is one, which is said. CLI_GO_ON where there is some
// operand then.
int cli_trace_options_some_file(struct trace_options *options);
// Several become one, which has no place beside them: then OUT was said.
int cli_trace_options_files_together(struct trace_options *options);
// analysis_take_labels. False: what is left is no file, and ends like a label that there is not, which is said.
bool cli_trace_options_labels(char *operand, struct analysis_labels *labels);
// Says what is wrong with the command line; returns CLI_BAD.
int cli_trace_options_refuse(const struct trace_options *options, const char *name, const char *why);

#endif
