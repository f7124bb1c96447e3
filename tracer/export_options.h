// SPDX-License-Identifier: Apache-2.0
#ifndef TRACER_EXPORT_OPTIONS_H
#define TRACER_EXPORT_OPTIONS_H

#include <stdbool.h>
#include <stdint.h>

#include "tracer/export/export.h"

struct export_command_options {
    const char *file;
    const char *out; // NULL: beside the file
    const struct export_format *format;
    uint32_t tid; // 0: all
    int weight;   // enum export_weight; -1: as the format has it
    const char *debug_root, *system_root;
    bool no_inlines, lines, debuginfod, no_slices, quiet;
};

// Returns CLI_GO_ON or an exit status.
int export_options_parse(struct export_command_options *options, int argc, char **argv);

#endif
