// SPDX-License-Identifier: Apache-2.0
// What is seen of a recording that goes on: the tables of `qut info`, of the last moments or of all the time.
#ifndef TRACER_TOP_SCREEN_H
#define TRACER_TOP_SCREEN_H

#include <stdbool.h>
#include <stdio.h>

#include "base/error.h"
#include "base/json.h"
#include "tracer/info/info_tables.h"

enum top_view { TOP_FUNCTIONS, TOP_THREADS, TOP_WAITS, TOP_LOCKS, TOP_VIEW_COUNT };
const char *top_view_name(enum top_view view); // "functions"

struct top_wanted {
    enum top_view view;
    bool of_all;        // since the start; else of the last window_ns
    uint64_t window_ns; // 0: of all as well
    uint64_t now_ns;    // CLOCK_MONOTONIC, of the machine that is recorded
    bool is_over;       // the recording has ended: what is not in the file now is lost
    const char *thread; // as in struct selection_wanted
    bool show_agent, no_inlines;
    int rows;            // of a table
    unsigned columns;    // 0: no bound
    const char *subject; // what is recorded, for people
    const char *remark;  // "paused"; "": none
    bool has_keys;       // the keys are told
};

enum { TOP_HEAD_LINES = 4 };

// Lines of text; the first TOP_HEAD_LINES are about the recording, a table follows. JSON: one object, in one line. -1
// with *error filled: BASE_ERR_TRUNCATED while nothing is recorded yet, no memory, a file that cannot be read.
int top_screen_text(const char *path, const struct top_wanted *wanted, FILE *output, struct base_error *error);
int top_screen_json(const char *path, const struct top_wanted *wanted, struct base_json *json,
                    struct base_error *error);

#endif
