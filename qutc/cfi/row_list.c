// SPDX-License-Identifier: Apache-2.0
#include "qutc/cfi/row_list.h"

#include "qutc/base/array.h"

void qutc_row_list_free(struct qutc_row_list *list)
{
    qutc_array_free(list->rows, list->capacity * sizeof *list->rows);
    *list = (struct qutc_row_list){0};
}

int qutc_row_list_reserve(struct qutc_row_list *list, size_t extra, struct qutc_error *error)
{
    if (list->capacity - list->count >= extra)
        return 0;
    size_t capacity = list->capacity ? list->capacity * 2 : 16;
    while (capacity - list->count < extra)
        capacity *= 2;
    struct qutc_row *rows = qutc_array_resize(list->rows, list->capacity * sizeof *rows, capacity * sizeof *rows);
    if (!rows)
        return qutc_fail(error, QUTC_ERR_NO_MEMORY, "", 0, "%zu rows", capacity);
    list->rows = rows;
    list->capacity = capacity;
    return 0;
}
