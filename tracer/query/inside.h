// SPDX-License-Identifier: Apache-2.0
// What the engines share: traces in their order, and rows on their way out.
#ifndef TRACER_QUERY_INSIDE_H
#define TRACER_QUERY_INSIDE_H

#include "tracer/query/query.h"

struct query_traces {
    struct tables **items; // by their numbers
    size_t count;
};

// -1, *error filled: no memory, or one is there twice.
int query_traces_make(struct query_traces *all, struct tables *const *traces, size_t count, struct base_error *error);
void query_traces_free(struct query_traces *all);

enum query_cell { QUERY_NULL, QUERY_INTEGER, QUERY_REAL, QUERY_TEXT };

// What a statement gives, row by row. Columns are known before the first.
struct query_rows {
    void *context;
    int column_count;
    const char *(*name)(void *context, int column);
    int (*next)(void *context); // 1: there is one more; 0: there is none; -1: it failed
    enum query_cell (*type)(void *context, int column);
    int64_t (*integer)(void *context, int column);
    double (*real)(void *context, int column);
    const char *(*text)(void *context, int column); // of a cell of any type; until the next one
};

enum query_printed { QUERY_PRINTED, QUERY_FAILED, QUERY_NO_MEMORY };
enum query_printed query_print(const struct query_rows *rows, enum query_form form, FILE *output);

#endif
