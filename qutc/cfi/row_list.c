// SPDX-License-Identifier: Apache-2.0
#include "qutc/cfi/row_list.h"

void cfi_row_list_free(struct cfi_row_list *list)
{
    base_vector_free_large(&list->vector, sizeof *list->rows);
}

int cfi_row_list_reserve(struct cfi_row_list *list, size_t extra, struct base_error *error)
{
    if (!base_vector_reserve_large(&list->vector, extra, sizeof *list->rows))
        return base_fail(error, BASE_ERR_NO_MEMORY, "", 0, "%zu rows", list->count + extra);
    return 0;
}
