// SPDX-License-Identifier: Apache-2.0
// A build without SQLite: ready queries are told, for other engines.
#include "tracer/query/query.h"

bool query_is_built(void)
{
    return false;
}

int query_run(struct tables *const *traces, size_t count, const char *sql, enum query_form form, FILE *output, int *at,
              struct base_error *error)
{
    (void)traces;
    (void)count;
    (void)sql;
    (void)form;
    (void)output;
    *at = -1;
    return base_fail(error, BASE_ERR_UNSUPPORTED, "", 0, "this qut was built without SQLite");
}
