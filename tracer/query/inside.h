// SPDX-License-Identifier: Apache-2.0
#ifndef TRACER_QUERY_INSIDE_H
#define TRACER_QUERY_INSIDE_H

#include <sqlite3.h>

#include "tracer/query/query.h"

struct query_traces {
    struct tables **items; // by their numbers
    size_t count;
};

struct query_source { // of one virtual table
    const struct query_traces *traces;
    enum tables_table table;
};

extern const sqlite3_module query_table_module; // its `aux` is a struct query_source

// Prints what the statement gives. Returns what sqlite3_step said last.
int query_print(sqlite3_stmt *statement, enum query_form form, FILE *output);

#endif
