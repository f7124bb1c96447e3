// SPDX-License-Identifier: Apache-2.0
// What cost most in what was recorded: the first lines of `qut info --top`, read from the finished file.
#ifndef TRACER_CLI_RECORD_TOP_H
#define TRACER_CLI_RECORD_TOP_H

#include <stdbool.h>

#include "base/json.h"
#include "tracer/analysis/selection.h"
#include "tracer/export/quality.h"
#include "tracer/trace/trace_data.h"

struct record_top {
    struct trace trace;
    struct names *names;
    struct selection selection; // all of it
    bool is_read;               // else nothing of these is there
    struct quality quality;     // of what was read
    char why[512];              // it was not read; "": there is no sample to tell of
};

void cli_record_top_read(struct record_top *top, const char *path, uint64_t file_bytes);
// What we took in the program's own threads, by samples. False: there are none to go by.
struct record_own {
    uint64_t ns;
    double share, error; // of the program's processor time, ours with it; at 95 %
};
bool cli_record_top_own(const struct record_top *top, struct record_own *own);
void cli_record_top_text(const struct record_top *top, FILE *output);
void cli_record_top_json(const struct record_top *top, struct base_json *json); // members of the object that is open
void cli_record_top_free(struct record_top *top);

#endif
