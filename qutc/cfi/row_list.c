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

size_t cfi_row_list_index(const struct cfi_row_list *list, uint32_t pc_rel)
{
    size_t low = 0, high = list->count;
    while (low < high) {
        size_t middle = low + (high - low) / 2;
        if (list->rows[middle].pc_rel <= pc_rel)
            low = middle + 1;
        else
            high = middle;
    }
    return low ? low - 1 : SIZE_MAX;
}

uint32_t cfi_row_list_at(const struct cfi_row_list *list, uint32_t pc_rel)
{
    size_t i = cfi_row_list_index(list, pc_rel);
    return i == SIZE_MAX ? 0 : list->rows[i].rule_id;
}
