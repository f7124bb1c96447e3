// SPDX-License-Identifier: Apache-2.0
// Tables of `qut info` that need names: where time went, what threads waited for, for which.
#ifndef TRACER_INFO_INFO_TABLES_H
#define TRACER_INFO_INFO_TABLES_H

#include "base/json.h"
#include "tracer/names/names.h"

struct info_wanted {
    int top; // rows; 0: not asked for
    bool blocked, locks;
    bool show_agent; // what the agent took stands among the functions
    int weight;      // enum export_weight; -1: as the trace has it
};
// Whether any is asked for.
bool info_tables_wanted(const struct info_wanted *wanted);

// Members of the object that is open. -1: no memory.
int info_tables_json(const struct info_wanted *wanted, const struct trace *trace, const struct names *names,
                     struct base_json *json);
int info_tables_text(const struct info_wanted *wanted, const struct trace *trace, const struct names *names,
                     FILE *output);

#endif
