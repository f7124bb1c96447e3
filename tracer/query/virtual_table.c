// SPDX-License-Identifier: Apache-2.0
// A table of all traces as SQLite asks for it: all rows, those of one trace, those of one stack or frame. Rows come in
// the order of traces and of the number that joins; samples do so where that is asked for.
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tracer/query/sqlite_tables.h"

enum { AHEAD = 8 };                                             // rows, whose memory is fetched meanwhile
enum { BY_TRACE = 1, BY_NUMBER = 2, BY_DEPTH = 4, SORTED = 8 }; // idxNum

struct table {
    sqlite3_vtab base;
    struct query_source source;
};

struct cursor {
    sqlite3_vtab_cursor base;
    struct query_source source;
    int plan;
    int64_t trace, number, depth; // that are asked for
    size_t at;                    // of the traces
    const uint32_t *order;        // of samples: NULL: as they are
    uint64_t next, end;           // rows of it that are left
    struct tables_row row;
};

// The column that joins; -1: the table has none.
static int number_column(enum tables_table table)
{
    switch (table) {
    case TABLES_SAMPLES: return TABLES_SAMPLES_STACK;
    case TABLES_STACKS: return TABLES_STACKS_STACK;
    case TABLES_FRAMES: return TABLES_FRAMES_FRAME;
    default: return -1;
    }
}

static int connect_table(sqlite3 *database, void *aux, int argc, const char *const *argv, sqlite3_vtab **to,
                         char **error)
{
    (void)argc;
    (void)argv;
    (void)error;
    const struct query_source *source = aux;
    const struct tables_schema *schema = &tables_schemas[source->table];
    char text[2048] = "CREATE TABLE t(";
    for (unsigned i = 0; i < schema->column_count; i++)
        snprintf(text + strlen(text), sizeof text - strlen(text), "%s\"%s\" %s", i ? ", " : "", schema->columns[i].name,
                 schema->columns[i].type == TABLES_TEXT ? "TEXT" : "INTEGER");
    snprintf(text + strlen(text), sizeof text - strlen(text), ")");
    const int status = query_sqlite.declare_vtab(database, text);
    if (status != SQLITE_OK)
        return status;
    struct table *table = query_sqlite.malloc(sizeof *table);
    if (!table)
        return SQLITE_NOMEM;
    *table = (struct table){.source = *source};
    *to = &table->base;
    return SQLITE_OK;
}

static int disconnect_table(sqlite3_vtab *table)
{
    query_sqlite.free(table);
    return SQLITE_OK;
}

// ---- which way is the best

// Rows are given by trace, then by number; those of stacks as stacks hang together, each with its frames in order.
static bool is_sorted_so(const struct table *table, const sqlite3_index_info *info, int plan)
{
    enum { NOTHING = -2 };
    const int number = number_column(table->source.table);
    const bool is_one_trace = plan & BY_TRACE || table->source.traces->count == 1;
    const int second = table->source.table != TABLES_STACKS ? number
                       : plan & BY_NUMBER                   ? (int)TABLES_STACKS_DEPTH
                                                            : NOTHING;
    int next = is_one_trace ? second : TABLES_TRACE;
    for (int i = 0; i < info->nOrderBy; i++) {
        const int column = info->aOrderBy[i].iColumn;
        if (info->aOrderBy[i].desc)
            return false;
        if ((column == TABLES_TRACE && is_one_trace) || (column == number && plan & BY_NUMBER))
            continue; // the same in all rows
        if (column != next)
            return false;
        next = next == TABLES_TRACE ? second : NOTHING;
    }
    return info->nOrderBy > 0;
}

static double rows_of(const struct query_source *source)
{
    double rows = 0;
    for (size_t i = 0; i < source->traces->count; i++)
        rows += (double)tables_row_count(source->traces->items[i], source->table);
    return rows;
}

static int best_index(sqlite3_vtab *base, sqlite3_index_info *info)
{
    const struct table *table = (const struct table *)base;
    const int number = number_column(table->source.table);
    int plan = 0, constraint[3] = {-1, -1, -1};
    for (int i = 0; i < info->nConstraint; i++) {
        const struct sqlite3_index_constraint *one = &info->aConstraint[i];
        if (!one->usable || one->op != SQLITE_INDEX_CONSTRAINT_EQ)
            continue;
        const int which = one->iColumn == TABLES_TRACE                                                  ? 0
                          : one->iColumn == number                                                      ? 1
                          : table->source.table == TABLES_STACKS && one->iColumn == TABLES_STACKS_DEPTH ? 2
                                                                                                        : -1;
        if (which >= 0 && constraint[which] < 0) {
            constraint[which] = i;
            plan |= 1 << which;
        }
    }
    if (!(plan & BY_NUMBER))
        plan &= ~BY_DEPTH; // it would save nothing
    int argument = 0;
    for (int which = 0; which < 3; which++)
        if (plan & 1 << which)
            info->aConstraintUsage[constraint[which]].argvIndex = ++argument;
    double rows = rows_of(&table->source) + 1;
    if (plan & BY_TRACE)
        rows /= (double)table->source.traces->count;
    if (plan & BY_NUMBER)
        rows = table->source.table == TABLES_STACKS && !(plan & BY_DEPTH) ? 20
               : table->source.table == TABLES_SAMPLES                    ? 1 + rows / 1000
                                                                          : 1;
    if (is_sorted_so(table, info, plan)) {
        info->orderByConsumed = 1;
        plan |= SORTED;
    }
    info->idxNum = plan;
    info->estimatedRows = (sqlite3_int64)rows;
    info->estimatedCost = rows + 10;
    return SQLITE_OK;
}

// ---- rows

// The first of the samples in this order whose stack is not below `stack`.
static uint64_t first_of_stack(const struct tables *tables, const uint32_t *order, int64_t stack)
{
    uint64_t low = 0, high = tables_row_count(tables, TABLES_SAMPLES);
    while (low < high) {
        const uint64_t middle = low + (high - low) / 2;
        const struct tables_row row = {.table = TABLES_SAMPLES, .number = order[middle], .item = order[middle]};
        if (tables_number(tables, &row, TABLES_SAMPLES_STACK) < stack)
            low = middle + 1;
        else
            high = middle;
    }
    return low;
}

static int open_trace(struct cursor *cursor)
{
    struct tables *tables = cursor->source.traces->items[cursor->at];
    const enum tables_table table = cursor->source.table;
    const int64_t number = cursor->number;
    cursor->order = NULL;
    cursor->next = 0;
    cursor->end = tables_row_count(tables, table);
    if (table == TABLES_SAMPLES && cursor->plan & (BY_NUMBER | SORTED)) {
        cursor->order = tables_samples_by_stack(tables);
        if (!cursor->order)
            return SQLITE_NOMEM;
    }
    if (!(cursor->plan & BY_NUMBER))
        return SQLITE_OK;
    if (table == TABLES_SAMPLES) {
        cursor->next = first_of_stack(tables, cursor->order, number);
        cursor->end = number < INT64_MAX ? first_of_stack(tables, cursor->order, number + 1) : cursor->end;
    } else if (table == TABLES_FRAMES) {
        const bool is_there = number >= 0 && (uint64_t)number < cursor->end;
        cursor->next = is_there ? (uint64_t)number : 0;
        cursor->end = is_there ? (uint64_t)number + 1 : 0;
    } else {
        uint64_t count;
        cursor->next = tables_stack_rows(tables, number, &count);
        if (cursor->plan & BY_DEPTH) {
            const bool is_there = cursor->depth >= 0 && (uint64_t)cursor->depth < count;
            cursor->next += is_there ? (uint64_t)cursor->depth : 0;
            count = is_there;
        }
        cursor->end = cursor->next + count;
    }
    return SQLITE_OK;
}

static int open_row(struct cursor *cursor)
{
    const struct query_traces *traces = cursor->source.traces;
    while (cursor->at < traces->count) {
        if (cursor->next < cursor->end) {
            const uint64_t number = cursor->order ? cursor->order[cursor->next] : cursor->next;
            if (cursor->order && cursor->end - cursor->next > AHEAD)
                tables_prefetch_sample(traces->items[cursor->at], cursor->order[cursor->next + AHEAD]);
            cursor->row = tables_row_at(traces->items[cursor->at], cursor->source.table, number);
            return SQLITE_OK;
        }
        do
            cursor->at++;
        while (cursor->at < traces->count && cursor->plan & BY_TRACE &&
               tables_trace_id(traces->items[cursor->at]) != cursor->trace);
        const int status = cursor->at < traces->count ? open_trace(cursor) : SQLITE_OK;
        if (status != SQLITE_OK)
            return status;
    }
    return SQLITE_OK;
}

static int open_cursor(sqlite3_vtab *base, sqlite3_vtab_cursor **to)
{
    struct cursor *cursor = query_sqlite.malloc(sizeof *cursor);
    if (!cursor)
        return SQLITE_NOMEM;
    *cursor = (struct cursor){.source = ((struct table *)base)->source};
    *to = &cursor->base;
    return SQLITE_OK;
}

static int close_cursor(sqlite3_vtab_cursor *cursor)
{
    query_sqlite.free(cursor);
    return SQLITE_OK;
}

// False: no number of a row is equal to it.
static bool take_number(sqlite3_value *value, int64_t *number)
{
    *number = query_sqlite.value_int64(value);
    switch (query_sqlite.value_numeric_type(value)) {
    case SQLITE_INTEGER: return true;
    case SQLITE_FLOAT: return (double)*number == query_sqlite.value_double(value);
    default: return false;
    }
}

static int filter(sqlite3_vtab_cursor *base, int plan, const char *text, int argc, sqlite3_value **argv)
{
    (void)text;
    struct cursor *cursor = (struct cursor *)base;
    int64_t *const wanted[3] = {&cursor->trace, &cursor->number, &cursor->depth};
    const struct query_traces *traces = cursor->source.traces;
    cursor->plan = plan;
    cursor->at = 0;
    cursor->next = cursor->end = 0;
    for (int which = 0, argument = 0; which < 3 && argument < argc; which++)
        if (plan & 1 << which && !take_number(argv[argument++], wanted[which])) {
            cursor->at = traces->count;
            return SQLITE_OK;
        }
    while (plan & BY_TRACE && cursor->at < traces->count && tables_trace_id(traces->items[cursor->at]) != cursor->trace)
        cursor->at++;
    const int status = cursor->at < traces->count ? open_trace(cursor) : SQLITE_OK;
    return status == SQLITE_OK ? open_row(cursor) : status;
}

static int next_row(sqlite3_vtab_cursor *base)
{
    struct cursor *cursor = (struct cursor *)base;
    if (++cursor->next < cursor->end && !cursor->order) {
        tables_row_next(cursor->source.traces->items[cursor->at], &cursor->row);
        return SQLITE_OK;
    }
    return open_row(cursor);
}

static int is_at_end(sqlite3_vtab_cursor *base)
{
    const struct cursor *cursor = (const struct cursor *)base;
    return cursor->at >= cursor->source.traces->count;
}

static int give_cell(sqlite3_vtab_cursor *base, sqlite3_context *to, int column)
{
    const struct cursor *cursor = (const struct cursor *)base;
    const struct tables *tables = cursor->source.traces->items[cursor->at];
    if (tables_schemas[cursor->source.table].columns[column].type == TABLES_TEXT)
        query_sqlite.result_text(to, tables_text(tables, &cursor->row, (unsigned)column), -1, SQLITE_STATIC);
    else
        query_sqlite.result_int64(to, tables_number(tables, &cursor->row, (unsigned)column));
    return SQLITE_OK;
}

static int give_row_number(sqlite3_vtab_cursor *base, sqlite3_int64 *number)
{
    const struct cursor *cursor = (const struct cursor *)base;
    *number = (sqlite3_int64)((uint64_t)cursor->at << 40 | cursor->row.number);
    return SQLITE_OK;
}

const sqlite3_module query_table_module = {
    .xConnect = connect_table, // and no xCreate: the table is there by its name
    .xBestIndex = best_index,
    .xDisconnect = disconnect_table,
    .xOpen = open_cursor,
    .xClose = close_cursor,
    .xFilter = filter,
    .xNext = next_row,
    .xEof = is_at_end,
    .xColumn = give_cell,
    .xRowid = give_row_number,
};
