// SPDX-License-Identifier: Apache-2.0
// Tables of `qut info` that need names: where time went, what threads waited for, for which.
#ifndef TRACER_INFO_INFO_TABLES_H
#define TRACER_INFO_INFO_TABLES_H

#include "base/json.h"
#include "tracer/analysis/selection.h"
#include "tracer/names/names.h"

struct info_wanted {
    bool functions;
    int rows; // of each table; 0: as many as fit a page
    bool by_thread, blocked, locks;
    bool calls;           // exact ones
    const char *slowest;  // a function of them; NULL: none
    double slowest_share; // of its calls
    bool show_agent;      // what the agent took stands among the functions
    int weight;           // enum export_weight; -1: as the trace has it
    unsigned columns;     // of a line; 0: as the terminal has, or without a bound
};
// Whether any is asked for.
bool info_tables_wanted(const struct info_wanted *wanted);

// Of a selection of all kinds that leaves the agent in. The names are of the whole trace. JSON: members of the object
// that is open. -1: no memory.
int info_tables_select(struct selection *to, const struct trace *trace, const struct selection_wanted *part,
                       struct base_error *error);
int info_tables_json(const struct info_wanted *wanted, const struct selection *selection, const struct names *names,
                     struct base_json *json);
int info_tables_text(const struct info_wanted *wanted, const struct selection *selection, const struct names *names,
                     FILE *output);

#endif
