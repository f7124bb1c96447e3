// SPDX-License-Identifier: Apache-2.0
#include <stdlib.h>
#include <string.h>

#include "tracer/query/inside.h"

bool query_is_built(void)
{
    return true;
}

// SELECT and what it needs; no ATTACH, no PRAGMA, no change, no library.
static int authorize(void *context, int action, const char *first, const char *second, const char *database,
                     const char *trigger)
{
    (void)context;
    (void)first;
    (void)database;
    (void)trigger;
    switch (action) {
    case SQLITE_SELECT:
    case SQLITE_READ:
    case SQLITE_RECURSIVE: return SQLITE_OK;
    case SQLITE_FUNCTION: return second && sqlite3_stricmp(second, "load_extension") == 0 ? SQLITE_DENY : SQLITE_OK;
    default: return SQLITE_DENY;
    }
}

static int fail(sqlite3 *database, int status, int *at, struct base_error *error)
{
    *at = sqlite3_error_offset(database);
    if (status == SQLITE_NOMEM)
        return base_fail(error, BASE_ERR_NO_MEMORY, "", 0, "query");
    if (status == SQLITE_AUTH)
        return base_fail(error, BASE_ERR_UNSUPPORTED, "", 0, "only SELECT: traces are read, and nothing else");
    return base_fail(error, BASE_ERR_MALFORMED, "SQL", *at < 0 ? 0 : (uint64_t)*at, "%s", sqlite3_errmsg(database));
}

static int by_number(const void *a, const void *b)
{
    const int64_t left = tables_trace_id(*(struct tables *const *)a),
                  right = tables_trace_id(*(struct tables *const *)b);
    return (left > right) - (left < right);
}

static bool is_blank(const char *text)
{
    return !text || !text[strspn(text, " \t\r\n;")];
}

static int run(sqlite3 *database, const struct query_traces *traces, const char *sql, enum query_form form,
               FILE *output, int *at, struct base_error *error)
{
    struct query_source sources[TABLES_COUNT];
    int status = SQLITE_OK;
    for (unsigned i = 0; i < TABLES_COUNT && status == SQLITE_OK; i++) {
        sources[i] = (struct query_source){traces, (enum tables_table)i};
        status = sqlite3_create_module_v2(database, tables_schemas[i].name, &query_table_module, &sources[i], NULL);
    }
    sqlite3_stmt *statement = NULL;
    const char *rest = NULL;
    // What declares the tables' columns would be refused, too: it comes before.
    if (status == SQLITE_OK)
        status = sqlite3_exec(database, "SELECT 1 FROM traces, samples, stacks, frames LIMIT 0", NULL, NULL, NULL);
    sqlite3_set_authorizer(database, authorize, NULL);
    if (status == SQLITE_OK)
        status = sqlite3_prepare_v2(database, sql, -1, &statement, &rest);
    if (status != SQLITE_OK)
        return fail(database, status, at, error);
    int result = 0;
    if (!statement || !is_blank(rest)) {
        *at = statement ? (int)(rest - sql) : -1;
        result = base_fail(error, BASE_ERR_MALFORMED, "", 0, statement ? "one statement at a time" : "no statement");
    } else {
        status = query_print(statement, form, output);
        if (status != SQLITE_DONE)
            result = fail(database, status, at, error);
    }
    sqlite3_finalize(statement);
    return result;
}

int query_run(struct tables *const *traces, size_t count, const char *sql, enum query_form form, FILE *output, int *at,
              struct base_error *error)
{
    struct query_traces all = {.items = calloc(count + 1, sizeof *all.items), .count = count};
    sqlite3 *database = NULL;
    *at = -1;
    if (!all.items)
        return base_fail(error, BASE_ERR_NO_MEMORY, "", 0, "query");
    memcpy(all.items, traces, count * sizeof *all.items);
    qsort(all.items, count, sizeof *all.items, by_number);
    int result = 0;
    for (size_t i = 1; i < count && result == 0; i++)
        if (tables_trace_id(all.items[i - 1]) == tables_trace_id(all.items[i]))
            result = base_fail(error, BASE_ERR_UNSUPPORTED, "", 0, "the same trace is given twice");
    if (result == 0 && sqlite3_open_v2(":memory:", &database, SQLITE_OPEN_READWRITE | SQLITE_OPEN_MEMORY, NULL) != 0)
        result = base_fail(error, BASE_ERR_NO_MEMORY, "", 0, "query");
    if (result == 0)
        result = run(database, &all, sql, form, output, at, error);
    sqlite3_close(database);
    free(all.items);
    return result;
}
