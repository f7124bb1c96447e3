// SPDX-License-Identifier: Apache-2.0
// The file that a recording makes: FILE, into which the first process's samples go as they come; FILE.parts/, where
// those of each other process are until the recording ends, when they are put behind it. Whatever kills the recorder,
// all of them can be read.
#ifndef TRACER_RECORD_OUTPUT_H
#define TRACER_RECORD_OUTPUT_H

#include <limits.h>
#include <stdbool.h>
#include <stdint.h>

#include "base/error.h"
#include "tracer/trace/trace_data.h"

struct output {
    char path[PATH_MAX];
    char parts[PATH_MAX + 8];
    char kept_as[PATH_MAX]; // what was there before; "": nothing
    int fd;
    bool has_parts; // the folder was made
    uint64_t part_count;
};

// Whether FILE can be made at all; nothing is changed yet.
int record_output_check(const char *path, struct base_error *error);
// A file that is there keeps its contents under another name: FILE.1, FILE.2, ...
int record_output_begin(struct output *output, const char *path, struct base_error *error);
// A file for one more process; -1: *error says why. `path` has room for PATH_MAX + 64.
int record_output_part(struct output *output, uint32_t pid, char *path, size_t size, struct base_error *error);
// Puts a part behind what is in FILE, and removes it; where that fails, it stays.
int record_output_append(struct output *output, const char *part_path, struct base_error *error);
// Closes FILE; `is_wanted` false: removes it again, and what was there before is back. -1: some file systems tell only
// now that it could not be written.
int record_output_end(struct output *output, bool is_wanted, struct base_error *error);

#endif
