// SPDX-License-Identifier: Apache-2.0
#include "tracer/query/sqlite_tables.h"

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
    case SQLITE_FUNCTION:
        return second && query_sqlite.stricmp(second, "load_extension") == 0 ? SQLITE_DENY : SQLITE_OK;
    default: return SQLITE_DENY;
    }
}

static int fail(sqlite3 *database, int status, int *at, struct base_error *error)
{
    *at = query_sqlite.error_offset(database);
    if (status == SQLITE_NOMEM)
        return base_fail(error, BASE_ERR_NO_MEMORY, "", 0, "query");
    if (status == SQLITE_AUTH)
        return base_fail(error, BASE_ERR_UNSUPPORTED, "", 0, "only SELECT: traces are read, and nothing else");
    return base_fail(error, BASE_ERR_MALFORMED, "SQL", *at < 0 ? 0 : (uint64_t)*at, "%s",
                     query_sqlite.errmsg(database));
}

static bool is_blank(const char *text)
{
    return !text || !text[strspn(text, " \t\r\n;")];
}

// ---- rows

static const char *name_of(void *statement, int column)
{
    return query_sqlite.column_name(statement, column);
}

static int next_row(void *statement)
{
    const int status = query_sqlite.step(statement);
    return status == SQLITE_ROW ? 1 : status == SQLITE_DONE ? 0 : -1;
}

static enum query_cell type_of(void *statement, int column)
{
    switch (query_sqlite.column_type(statement, column)) {
    case SQLITE_INTEGER: return QUERY_INTEGER;
    case SQLITE_FLOAT: return QUERY_REAL;
    case SQLITE_NULL: return QUERY_NULL;
    default: return QUERY_TEXT;
    }
}

static int64_t integer_of(void *statement, int column)
{
    return query_sqlite.column_int64(statement, column);
}

static double real_of(void *statement, int column)
{
    return query_sqlite.column_double(statement, column);
}

static const char *text_of(void *statement, int column)
{
    return (const char *)query_sqlite.column_text(statement, column);
}

static enum query_printed print_rows(sqlite3_stmt *statement, enum query_form form, FILE *output)
{
    const struct query_rows rows = {.context = statement,
                                    .column_count = query_sqlite.column_count(statement),
                                    .name = name_of,
                                    .next = next_row,
                                    .type = type_of,
                                    .integer = integer_of,
                                    .real = real_of,
                                    .text = text_of};
    return query_print(&rows, form, output);
}

static int run(sqlite3 *database, const struct query_traces *traces, const char *sql, enum query_form form,
               FILE *output, int *at, struct base_error *error)
{
    struct query_source sources[TABLES_COUNT];
    int status = SQLITE_OK;
    for (unsigned i = 0; i < TABLES_COUNT && status == SQLITE_OK; i++) {
        sources[i] = (struct query_source){traces, (enum tables_table)i};
        status =
            query_sqlite.create_module_v2(database, tables_schemas[i].name, &query_table_module, &sources[i], NULL);
    }
    sqlite3_stmt *statement = NULL;
    const char *rest = NULL;
    // What declares the tables' columns would be refused, too: it comes before.
    if (status == SQLITE_OK)
        status = query_sqlite.exec(database, "SELECT 1 FROM traces, samples, stacks, frames LIMIT 0", NULL, NULL, NULL);
    query_sqlite.set_authorizer(database, authorize, NULL);
    if (status == SQLITE_OK)
        status = query_sqlite.prepare_v2(database, sql, -1, &statement, &rest);
    if (status != SQLITE_OK)
        return fail(database, status, at, error);
    int result = 0;
    if (!statement || !is_blank(rest)) {
        *at = statement ? (int)(rest - sql) : -1;
        result = base_fail(error, BASE_ERR_MALFORMED, "", 0, statement ? "one statement at a time" : "no statement");
    } else {
        const enum query_printed printed = print_rows(statement, form, output);
        if (printed != QUERY_PRINTED)
            result =
                fail(database, printed == QUERY_NO_MEMORY ? SQLITE_NOMEM : query_sqlite.errcode(database), at, error);
    }
    query_sqlite.finalize(statement);
    return result;
}

int query_run(struct tables *const *traces, size_t count, const char *sql, enum query_form form, FILE *output, int *at,
              struct base_error *error)
{
    struct query_traces all;
    sqlite3 *database = NULL;
    *at = -1;
    if (query_sqlite_load(error) != 0)
        return -1;
    int result = query_traces_make(&all, traces, count, error);
    if (result == 0 &&
        query_sqlite.open_v2(":memory:", &database, SQLITE_OPEN_READWRITE | SQLITE_OPEN_MEMORY, NULL) != 0)
        result = base_fail(error, BASE_ERR_NO_MEMORY, "", 0, "query");
    if (result == 0)
        result = run(database, &all, sql, form, output, at, error);
    query_sqlite.close(database);
    query_traces_free(&all);
    return result;
}
