// SPDX-License-Identifier: Apache-2.0
// Rows as a table for people, as JSON, as CSV (RFC 4180).
#include <stdlib.h>
#include <string.h>

#include "base/json.h"
#include "base/utf8_inline.h"
#include "base/vector.h"
#include "tracer/query/inside.h"

// ---- JSON: an array of objects

static int print_json(sqlite3_stmt *statement, FILE *output)
{
    struct base_json json = {.stream = output};
    int status;
    base_json_open(&json, NULL, '[');
    while ((status = sqlite3_step(statement)) == SQLITE_ROW) {
        if (json.has_members)
            fputc('\n', output);
        base_json_open(&json, NULL, '{');
        for (int i = 0; i < sqlite3_column_count(statement); i++) {
            const char *name = sqlite3_column_name(statement, i);
            switch (sqlite3_column_type(statement, i)) {
            case SQLITE_INTEGER: base_json_integer(&json, name, sqlite3_column_int64(statement, i)); break;
            case SQLITE_FLOAT: base_json_short_real(&json, name, sqlite3_column_double(statement, i)); break;
            case SQLITE_NULL: base_json_null(&json, name); break;
            default: base_json_string(&json, name, (const char *)sqlite3_column_text(statement, i)); break;
            }
        }
        base_json_close(&json, '}');
    }
    base_json_close(&json, ']');
    fputc('\n', output);
    return status;
}

// ---- CSV

static void print_field(const char *text, FILE *output)
{
    if (!text[strcspn(text, ",\"\r\n")]) {
        fputs(text, output);
        return;
    }
    fputc('"', output);
    for (; *text; text++) {
        if (*text == '"')
            fputc('"', output);
        fputc(*text, output);
    }
    fputc('"', output);
}

static const char *cell_of(sqlite3_stmt *statement, int column)
{
    const char *text = (const char *)sqlite3_column_text(statement, column);
    return text ? text : "";
}

static int print_csv(sqlite3_stmt *statement, FILE *output)
{
    const int count = sqlite3_column_count(statement);
    int status;
    for (int i = 0; i < count; i++) {
        print_field(sqlite3_column_name(statement, i), output);
        fputs(i + 1 < count ? "," : "\r\n", output);
    }
    while ((status = sqlite3_step(statement)) == SQLITE_ROW)
        for (int i = 0; i < count; i++) {
            print_field(cell_of(statement, i), output);
            fputs(i + 1 < count ? "," : "\r\n", output);
        }
    return status;
}

// ---- a table: all rows are needed to know how wide it is

struct cells {
    BASE_VECTOR(char *);
    bool has_failed;
};

static void add_cell(struct cells *cells, const char *text)
{
    char **place = BASE_ADD(cells);
    char *copy = place ? strdup(text) : NULL;
    if (place)
        *place = copy;
    cells->has_failed |= !copy;
}

// In characters, as far as each has one place on the screen.
static size_t width_of(const char *text)
{
    size_t width = 0;
    for (; *text; text++)
        width += ((uint8_t)*text & 0xc0) != 0x80;
    return width;
}

static void print_row(char *const *cells, const size_t *widths, const bool *is_number, size_t count, FILE *output)
{
    for (size_t i = 0; i < count; i++) {
        const size_t pad = widths[i] - width_of(cells[i]);
        if (is_number[i])
            fprintf(output, "%*s%s", (int)pad, "", cells[i]);
        else
            fprintf(output, "%s%*s", cells[i], i + 1 < count ? (int)pad : 0, "");
        fputs(i + 1 < count ? "  " : "\n", output);
    }
}

static int print_table(sqlite3_stmt *statement, FILE *output)
{
    const size_t count = (size_t)sqlite3_column_count(statement);
    struct cells cells = {0};
    size_t *widths = calloc(count + 1, sizeof *widths);
    bool *is_number = calloc(count + 1, sizeof *is_number);
    int status = SQLITE_NOMEM;
    for (size_t i = 0; i < count && widths && is_number; i++) {
        add_cell(&cells, sqlite3_column_name(statement, (int)i));
        is_number[i] = true;
    }
    while (widths && is_number && !cells.has_failed && (status = sqlite3_step(statement)) == SQLITE_ROW)
        for (size_t i = 0; i < count; i++) {
            is_number[i] &= sqlite3_column_type(statement, (int)i) != SQLITE_TEXT;
            add_cell(&cells, cell_of(statement, (int)i));
        }
    status = cells.has_failed ? SQLITE_NOMEM : status;
    for (size_t i = 0; i < cells.count && status == SQLITE_DONE; i++) {
        const size_t width = width_of(cells.items[i]);
        widths[i % count] = width > widths[i % count] ? width : widths[i % count];
    }
    for (size_t i = 0; i + count <= cells.count && status == SQLITE_DONE && count; i += count)
        print_row(cells.items + i, widths, is_number, count, output);
    for (size_t i = 0; i < cells.count; i++)
        free(cells.items[i]);
    base_vector_free(&cells.vector);
    free(widths);
    free(is_number);
    return status;
}

int query_print(sqlite3_stmt *statement, enum query_form form, FILE *output)
{
    switch (form) {
    case QUERY_JSON: return print_json(statement, output);
    case QUERY_CSV: return print_csv(statement, output);
    default: return print_table(statement, output);
    }
}
