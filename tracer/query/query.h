// SPDX-License-Identifier: Apache-2.0
// SQL over traces: the tables of tracer/tables as virtual tables of SQLite, which asks for cells as it needs them.
// Nothing is copied, and nothing can be changed: statements other than SELECT are refused.
//
// query_run allocates and may block in `output`; it changes nothing but by tables_samples_by_stack, so one thread at a
// time runs queries over the same tables.
#ifndef TRACER_QUERY_QUERY_H
#define TRACER_QUERY_QUERY_H

#include <stdio.h>

#include "tracer/tables/tables.h"

enum query_form { QUERY_TABLE, QUERY_JSON, QUERY_CSV };

// Whether this build has SQLite.
bool query_is_built(void);

// Runs one statement over the traces, and prints its rows. Returns 0, or -1 with *error filled; *at: where in `sql` it
// is, or -1. Traces of the same number are an error.
int query_run(struct tables *const *traces, size_t count, const char *sql, enum query_form form, FILE *output, int *at,
              struct base_error *error);

// The same by DuckDB, whose library is loaded for it. The tables are copied into its memory, by way of Parquet in
// $TMPDIR, and with them those that tables_write_folder has left in folders. Where in `sql` something is wrong its own
// words say. *is_incomplete: some trace of the folders is.
struct query_folders {
    const char *const *items;
    size_t count;
};
int query_run_duckdb(struct tables *const *traces, size_t count, const struct query_folders *folders, const char *sql,
                     enum query_form form, FILE *output, bool *is_incomplete, struct base_error *error);

// Queries that are ready, up to one without a name.
struct query_ready {
    const char *name;
    const char *what; // a sentence
    const char *sql;
};
extern const struct query_ready query_ready[];
const struct query_ready *query_ready_find(const char *name); // NULL: there is none

#endif
