// SPDX-License-Identifier: Apache-2.0
#include "tracer/query/sqlite_late.h"

#include <assert.h>
#include <stddef.h>

#include "base/late.h"

struct query_sqlite query_sqlite;

#define FUNCTION(NAME)                                                                                                 \
    {                                                                                                                  \
        "sqlite3_" #NAME, offsetof(struct query_sqlite, NAME)                                                          \
    }
static const struct base_late_function functions[] = {FUNCTION(close),          FUNCTION(column_count),
                                                      FUNCTION(column_double),  FUNCTION(column_int64),
                                                      FUNCTION(column_name),    FUNCTION(column_text),
                                                      FUNCTION(column_type),    FUNCTION(create_module_v2),
                                                      FUNCTION(declare_vtab),   FUNCTION(errcode),
                                                      FUNCTION(errmsg),         FUNCTION(error_offset),
                                                      FUNCTION(exec),           FUNCTION(finalize),
                                                      FUNCTION(free),           FUNCTION(malloc),
                                                      FUNCTION(open_v2),        FUNCTION(prepare_v2),
                                                      FUNCTION(result_int64),   FUNCTION(result_text),
                                                      FUNCTION(set_authorizer), FUNCTION(step),
                                                      FUNCTION(stricmp),        FUNCTION(value_double),
                                                      FUNCTION(value_int64),    FUNCTION(value_numeric_type)};
#undef FUNCTION
enum { FUNCTIONS = sizeof functions / sizeof *functions };
static_assert(FUNCTIONS * sizeof(void *) == sizeof(struct query_sqlite), "each is looked up");

int query_sqlite_load(struct base_error *error)
{
    return base_late_load("SQLite", "libsqlite3.so.0", functions, FUNCTIONS, &query_sqlite, error);
}
