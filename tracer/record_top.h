// SPDX-License-Identifier: Apache-2.0
// What cost most in what was recorded: the first lines of `qut info --top`, read from the finished file.
#ifndef TRACER_RECORD_TOP_H
#define TRACER_RECORD_TOP_H

#include <stdbool.h>

#include "cli/json.h"
#include "tracer/names/names.h"
#include "tracer/trace/trace.h"

struct record_top {
    struct trace trace;
    struct names *names;
    bool is_read;  // else nothing of the two is there
    char why[512]; // it was not read; "": there is no sample to tell of
};

void record_top_read(struct record_top *top, const char *path, uint64_t file_bytes);
void record_top_text(const struct record_top *top, FILE *output);
void record_top_json(const struct record_top *top, struct cli_json *json); // members of the object that is open
void record_top_free(struct record_top *top);

#endif
