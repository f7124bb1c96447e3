// SPDX-License-Identifier: Apache-2.0
#include "tracer/query/duckdb_late.h"

#include <assert.h>
#include <stddef.h>
#include <stdlib.h>

#include "base/late.h"

static const struct base_late_function functions[] = {
    {"duckdb_open", offsetof(struct duckdb_functions, open)},
    {"duckdb_close", offsetof(struct duckdb_functions, close)},
    {"duckdb_connect", offsetof(struct duckdb_functions, connect)},
    {"duckdb_disconnect", offsetof(struct duckdb_functions, disconnect)},
    {"duckdb_query", offsetof(struct duckdb_functions, query)},
    {"duckdb_prepare", offsetof(struct duckdb_functions, prepare)},
    {"duckdb_prepare_error", offsetof(struct duckdb_functions, prepare_error)},
    {"duckdb_prepared_statement_type", offsetof(struct duckdb_functions, prepared_statement_type)},
    {"duckdb_execute_prepared", offsetof(struct duckdb_functions, execute_prepared)},
    {"duckdb_destroy_prepare", offsetof(struct duckdb_functions, destroy_prepare)},
    {"duckdb_result_error", offsetof(struct duckdb_functions, result_error)},
    {"duckdb_destroy_result", offsetof(struct duckdb_functions, destroy_result)},
    {"duckdb_column_count", offsetof(struct duckdb_functions, column_count)},
    {"duckdb_column_name", offsetof(struct duckdb_functions, column_name)},
    {"duckdb_column_type", offsetof(struct duckdb_functions, column_type)},
    {"duckdb_row_count", offsetof(struct duckdb_functions, row_count)},
    {"duckdb_value_is_null", offsetof(struct duckdb_functions, value_is_null)},
    {"duckdb_value_int64", offsetof(struct duckdb_functions, value_int64)},
    {"duckdb_value_double", offsetof(struct duckdb_functions, value_double)},
    {"duckdb_value_varchar", offsetof(struct duckdb_functions, value_varchar)},
    {"duckdb_free", offsetof(struct duckdb_functions, free)},
};
enum { FUNCTIONS = sizeof functions / sizeof *functions };
static_assert(FUNCTIONS * sizeof(void *) == sizeof(struct duckdb_functions), "each is looked up");

const struct duckdb_functions *duckdb_late(struct base_error *error)
{
    static struct duckdb_functions found;
    const char *named = getenv("QUT_DUCKDB");
    return base_late_load("DuckDB", named && *named ? named : "libduckdb.so", functions, FUNCTIONS, &found, error) == 0
               ? &found
               : NULL;
}
