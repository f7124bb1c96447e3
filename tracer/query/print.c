// SPDX-License-Identifier: Apache-2.0
// Rows as a table for people, as JSON, as CSV (RFC 4180).
#include <stdlib.h>
#include <string.h>

#include "base/json.h"
#include "base/utf8_inline.h"
#include "base/vector.h"
#include "tracer/query/inside.h"

// ---- JSON: an array of objects

static enum query_printed print_json(const struct query_rows *rows, FILE *output)
{
    struct base_json json = {.stream = output};
    int status;
    base_json_open(&json, NULL, '[');
    while ((status = rows->next(rows->context)) > 0) {
        if (json.has_members)
            fputc('\n', output);
        base_json_open(&json, NULL, '{');
        for (int i = 0; i < rows->column_count; i++) {
            const char *name = rows->name(rows->context, i);
            switch (rows->type(rows->context, i)) {
            case QUERY_INTEGER: base_json_integer(&json, name, rows->integer(rows->context, i)); break;
            case QUERY_REAL: base_json_short_real(&json, name, rows->real(rows->context, i)); break;
            case QUERY_NULL: base_json_null(&json, name); break;
            default: base_json_string(&json, name, rows->text(rows->context, i)); break;
            }
        }
        base_json_close(&json, '}');
    }
    base_json_close(&json, ']');
    fputc('\n', output);
    return status == 0 ? QUERY_PRINTED : QUERY_FAILED;
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

static const char *cell_of(const struct query_rows *rows, int column)
{
    const char *text = rows->type(rows->context, column) == QUERY_NULL ? NULL : rows->text(rows->context, column);
    return text ? text : "";
}

static enum query_printed print_csv(const struct query_rows *rows, FILE *output)
{
    const int count = rows->column_count;
    int status;
    for (int i = 0; i < count; i++) {
        print_field(rows->name(rows->context, i), output);
        fputs(i + 1 < count ? "," : "\r\n", output);
    }
    while ((status = rows->next(rows->context)) > 0)
        for (int i = 0; i < count; i++) {
            print_field(cell_of(rows, i), output);
            fputs(i + 1 < count ? "," : "\r\n", output);
        }
    return status == 0 ? QUERY_PRINTED : QUERY_FAILED;
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

static enum query_printed print_table(const struct query_rows *rows, FILE *output)
{
    const size_t count = (size_t)rows->column_count;
    struct cells cells = {0};
    size_t *widths = calloc(count + 1, sizeof *widths);
    bool *is_number = calloc(count + 1, sizeof *is_number);
    int status = 0;
    for (size_t i = 0; i < count && widths && is_number; i++) {
        add_cell(&cells, rows->name(rows->context, (int)i));
        is_number[i] = true;
    }
    while (widths && is_number && !cells.has_failed && (status = rows->next(rows->context)) > 0)
        for (size_t i = 0; i < count; i++) {
            is_number[i] &= rows->type(rows->context, (int)i) != QUERY_TEXT;
            add_cell(&cells, cell_of(rows, (int)i));
        }
    const bool no_memory = !widths || !is_number || cells.has_failed, is_whole = !no_memory && status == 0;
    for (size_t i = 0; i < cells.count && is_whole; i++) {
        const size_t width = width_of(cells.items[i]);
        widths[i % count] = width > widths[i % count] ? width : widths[i % count];
    }
    for (size_t i = 0; i + count <= cells.count && is_whole && count; i += count)
        print_row(cells.items + i, widths, is_number, count, output);
    for (size_t i = 0; i < cells.count; i++)
        free(cells.items[i]);
    base_vector_free(&cells.vector);
    free(widths);
    free(is_number);
    return no_memory ? QUERY_NO_MEMORY : status == 0 ? QUERY_PRINTED : QUERY_FAILED;
}

enum query_printed query_print(const struct query_rows *rows, enum query_form form, FILE *output)
{
    switch (form) {
    case QUERY_JSON: return print_json(rows, output);
    case QUERY_CSV: return print_csv(rows, output);
    default: return print_table(rows, output);
    }
}
