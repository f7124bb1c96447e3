// SPDX-License-Identifier: Apache-2.0
#ifndef TRACER_QUERY_SQLITE_TABLES_H
#define TRACER_QUERY_SQLITE_TABLES_H

#include "tracer/query/inside.h"
#include "tracer/query/sqlite_late.h"

struct query_source { // of one virtual table
    const struct query_traces *traces;
    enum tables_table table;
};

extern const sqlite3_module query_table_module; // its `aux` is a struct query_source

#endif
