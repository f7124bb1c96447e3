// SPDX-License-Identifier: Apache-2.0
// DuckDB over the same tables: written as Parquet into a folder of their own, from which it takes them into its memory;
// the folder is gone before the question is asked, and the files of this machine are closed to it then.
#include <errno.h>
#include <fcntl.h>
#include <ftw.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "tracer/query/duckdb_late.h"
#include "tracer/query/inside.h"

enum { FOLDERS_OPEN = 8 };

struct session {
    const struct duckdb_functions *duckdb;
    struct duckdb_handle *database, *connection, *statement;
    struct duckdb_result result;
    uint64_t row; // + 1: of the one at hand
    char *text;   // of the cell at hand
};

// ---- rows

static const char *name_of(void *context, int column)
{
    struct session *session = context;
    return session->duckdb->column_name(&session->result, (uint64_t)column);
}

static int next_row(void *context)
{
    struct session *session = context;
    return session->row++ < session->duckdb->row_count(&session->result);
}

// Sums are of a wider type than what they are of, and mostly fit all the same.
static bool is_short(const char *digits)
{
    errno = 0;
    strtoll(digits, NULL, 10);
    return errno == 0;
}

static const char *text_of(void *context, int column)
{
    struct session *session = context;
    if (session->text)
        session->duckdb->free(session->text);
    session->text = session->duckdb->value_varchar(&session->result, (uint64_t)column, session->row - 1);
    return session->text;
}

static enum query_cell type_of(void *context, int column)
{
    struct session *session = context;
    if (session->duckdb->value_is_null(&session->result, (uint64_t)column, session->row - 1))
        return QUERY_NULL;
    const int type = session->duckdb->column_type(&session->result, (uint64_t)column);
    if (type == DUCKDB_HUGEINT || type == DUCKDB_UBIGINT || type == DUCKDB_UHUGEINT) {
        const char *digits = text_of(session, column);
        return digits && is_short(digits) ? QUERY_INTEGER : QUERY_REAL;
    }
    if (type == DUCKDB_FLOAT || type == DUCKDB_DOUBLE || type == DUCKDB_DECIMAL)
        return QUERY_REAL;
    return type >= DUCKDB_BOOLEAN && type < DUCKDB_FLOAT ? QUERY_INTEGER : QUERY_TEXT;
}

static int64_t integer_of(void *context, int column)
{
    struct session *session = context;
    return session->duckdb->value_int64(&session->result, (uint64_t)column, session->row - 1);
}

static double real_of(void *context, int column)
{
    struct session *session = context;
    return session->duckdb->value_double(&session->result, (uint64_t)column, session->row - 1);
}

// ---- tables

static int fail(struct base_error *error, const char *said)
{
    char line[sizeof error->detail];
    snprintf(line, sizeof line, "%.*s", said ? (int)strcspn(said, "\n") : 0, said ? said : "");
    return base_fail(error, BASE_ERR_MALFORMED, "", 0, "DuckDB: %s", *line ? line : "it failed");
}

static int do_sql(struct session *session, const char *sql, struct base_error *error)
{
    struct duckdb_result result;
    const int status = session->duckdb->query(session->connection, sql, &result);
    if (status != DUCKDB_DONE)
        fail(error, session->duckdb->result_error(&result));
    session->duckdb->destroy_result(&result);
    return status == DUCKDB_DONE ? 0 : -1;
}

static int write_tables(const struct query_traces *all, const char *folder, struct base_error *error)
{
    char at[PATH_MAX];
    for (size_t i = 0; i < all->count; i++)
        if (tables_write_folder(all->items[i], folder, at, error) != 0)
            return -1;
    return 0;
}

// It stands between quotes, and what matches names is none of it. NULL: it cannot.
static char *folder_in_sql(const char *folder, struct base_error *error)
{
    char *path = realpath(folder, NULL);
    if (!path)
        base_fail_errno(error, errno);
    else if (strpbrk(path, "'*?["))
        base_fail(error, BASE_ERR_UNSUPPORTED, "", 0, "%.100s: a name with any of '*?[ is none that DuckDB can be told",
                  folder);
    else
        return path;
    free(path);
    return NULL;
}

// The columns in the order, and of the types, that they have everywhere: some of them are said by folders' names only.
static char *sql_of_table(const struct tables_schema *schema, char *const *folders, size_t count)
{
    char *sql = NULL;
    size_t size;
    FILE *text = open_memstream(&sql, &size);
    if (!text)
        return NULL;
    fprintf(text, "CREATE TABLE %s AS SELECT ", schema->name);
    for (unsigned i = 0; i < schema->column_count; i++)
        fprintf(text, "%s%s", i ? ", " : "", schema->columns[i].name);
    fprintf(text, " FROM read_parquet([");
    for (size_t i = 0; i < count; i++)
        fprintf(text, "%s'%s/%s/*/*/*.parquet'", i ? ", " : "", folders[i], schema->name);
    fprintf(text, "], hive_partitioning = true, hive_types_autocast = false)");
    if (fclose(text) == 0)
        return sql;
    free(sql);
    return NULL;
}

static int load_from(struct session *session, char *const *folders, size_t count, struct base_error *error)
{
    int status = 0;
    for (unsigned i = 0; i < TABLES_COUNT && status == 0; i++) {
        char *sql = sql_of_table(&tables_schemas[i], folders, count);
        status = sql ? do_sql(session, sql, error) : base_fail(error, BASE_ERR_NO_MEMORY, "", 0, "query");
        free(sql);
    }
    return status;
}

static int ask_number(struct session *session, const char *sql, int64_t *number, struct base_error *error)
{
    struct duckdb_result result;
    const int status = session->duckdb->query(session->connection, sql, &result);
    if (status == DUCKDB_DONE)
        *number = session->duckdb->value_int64(&result, 0, 0);
    else
        fail(error, session->duckdb->result_error(&result));
    session->duckdb->destroy_result(&result);
    return status == DUCKDB_DONE ? 0 : -1;
}

// A trace that a file has may be in a folder as well, or in two.
static int look_at_traces(struct session *session, bool *is_incomplete, struct base_error *error)
{
    int64_t twice, incomplete;
    if (ask_number(session, "SELECT count(*) - count(DISTINCT trace) FROM traces", &twice, error) != 0 ||
        ask_number(session, "SELECT count(*) FROM traces WHERE complete = 0", &incomplete, error) != 0)
        return -1;
    *is_incomplete |= incomplete != 0;
    return twice ? base_fail(error, BASE_ERR_UNSUPPORTED, "", 0, "%lld traces are there twice", (long long)twice) : 0;
}

static int remove_one(const char *path, const struct stat *status, int type, struct FTW *place)
{
    (void)status, (void)type, (void)place;
    return remove(path);
}

// The traces' own folder, if there are traces, and those that were given.
static int load_folders(struct session *session, const char *own, const struct query_folders *given,
                        struct base_error *error)
{
    char **folders = calloc(given->count + 1, sizeof *folders);
    size_t count = 0;
    int status = folders ? 0 : base_fail(error, BASE_ERR_NO_MEMORY, "", 0, "query");
    if (own && status == 0)
        status = (folders[count] = folder_in_sql(own, error)) ? count++, 0 : -1;
    for (size_t i = 0; i < given->count && status == 0; i++)
        status = (folders[count] = folder_in_sql(given->items[i], error)) ? count++, 0 : -1;
    if (status == 0)
        status = load_from(session, folders, count, error);
    while (count)
        free(folders[--count]);
    free(folders);
    return status;
}

static int load_traces(struct session *session, const struct query_traces *all, const struct query_folders *folders,
                       struct base_error *error)
{
    const char *where = getenv("TMPDIR");
    char own[PATH_MAX];
    if (snprintf(own, sizeof own, "%s/qut-query-XXXXXX", where && *where ? where : "/tmp") >= (int)sizeof own)
        return base_fail(error, BASE_ERR_UNSUPPORTED, "", 0, "TMPDIR is none that can be used");
    if (!mkdtemp(own))
        return base_fail_errno(error, errno);
    int status = write_tables(all, own, error);
    if (status == 0)
        status = load_folders(session, own, folders, error);
    nftw(own, remove_one, FOLDERS_OPEN, FTW_DEPTH | FTW_PHYS);
    return status;
}

static int load_tables(struct session *session, const struct query_traces *all, const struct query_folders *folders,
                       bool *is_incomplete, struct base_error *error)
{
    int result = all->count ? load_traces(session, all, folders, error) : load_folders(session, NULL, folders, error);
    if (result == 0)
        result = look_at_traces(session, is_incomplete, error);
    if (result == 0)
        result = do_sql(session, "SET enable_external_access = false", error);
    return result == 0 ? do_sql(session, "SET lock_configuration = true", error) : -1;
}

// ---- the question

static int ask(struct session *session, const char *sql, enum query_form form, FILE *output, struct base_error *error)
{
    const struct duckdb_functions *duckdb = session->duckdb;
    if (duckdb->prepare(session->connection, sql, &session->statement) != DUCKDB_DONE)
        return fail(error, session->statement ? duckdb->prepare_error(session->statement) : NULL);
    if (duckdb->prepared_statement_type(session->statement) != DUCKDB_SELECT)
        return base_fail(error, BASE_ERR_UNSUPPORTED, "", 0, "only SELECT: traces are read, and nothing else");
    int result = 0;
    if (duckdb->execute_prepared(session->statement, &session->result) != DUCKDB_DONE) {
        result = fail(error, duckdb->result_error(&session->result));
    } else {
        const struct query_rows rows = {.context = session,
                                        .column_count = (int)duckdb->column_count(&session->result),
                                        .name = name_of,
                                        .next = next_row,
                                        .type = type_of,
                                        .integer = integer_of,
                                        .real = real_of,
                                        .text = text_of};
        if (query_print(&rows, form, output) != QUERY_PRINTED)
            result = base_fail(error, BASE_ERR_NO_MEMORY, "", 0, "query");
    }
    duckdb->destroy_result(&session->result);
    return result;
}

int query_run_duckdb(struct tables *const *traces, size_t count, const struct query_folders *folders, const char *sql,
                     enum query_form form, FILE *output, bool *is_incomplete, struct base_error *error)
{
    struct query_traces all;
    struct session session = {.duckdb = duckdb_late(error)};
    if (!session.duckdb)
        return -1;
    int result = query_traces_make(&all, traces, count, error);
    if (result == 0 && (session.duckdb->open(NULL, &session.database) != DUCKDB_DONE ||
                        session.duckdb->connect(session.database, &session.connection) != DUCKDB_DONE))
        result = fail(error, "it does not begin");
    if (result == 0)
        result = load_tables(&session, &all, folders, is_incomplete, error);
    if (result == 0)
        result = ask(&session, sql, form, output, error);
    if (session.text)
        session.duckdb->free(session.text);
    if (session.statement)
        session.duckdb->destroy_prepare(&session.statement);
    if (session.connection)
        session.duckdb->disconnect(&session.connection);
    if (session.database)
        session.duckdb->close(&session.database);
    query_traces_free(&all);
    return result;
}
