// SPDX-License-Identifier: Apache-2.0
#include <stdlib.h>
#include <string.h>

#include "tracer/query/inside.h"

static int by_number(const void *a, const void *b)
{
    const int64_t left = tables_trace_id(*(struct tables *const *)a),
                  right = tables_trace_id(*(struct tables *const *)b);
    return (left > right) - (left < right);
}

int query_traces_make(struct query_traces *all, struct tables *const *traces, size_t count, struct base_error *error)
{
    *all = (struct query_traces){.items = calloc(count + 1, sizeof *all->items), .count = count};
    if (!all->items)
        return base_fail(error, BASE_ERR_NO_MEMORY, "", 0, "query");
    memcpy(all->items, traces, count * sizeof *all->items);
    qsort(all->items, count, sizeof *all->items, by_number);
    for (size_t i = 1; i < count; i++)
        if (tables_trace_id(all->items[i - 1]) == tables_trace_id(all->items[i]))
            return base_fail(error, BASE_ERR_UNSUPPORTED, "", 0, "the same trace is given twice");
    return 0;
}

void query_traces_free(struct query_traces *all)
{
    free(all->items);
    *all = (struct query_traces){.count = 0};
}
