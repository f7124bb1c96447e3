// SPDX-License-Identifier: Apache-2.0
// Rows in ascending order of pc: row i holds from its pc up to the next row's. What readers produce and the table
// writer consumes.
#ifndef QUTC_CFI_ROW_LIST_H
#define QUTC_CFI_ROW_LIST_H

#include <stddef.h>
#include <stdint.h>

#include "qutc/base/error.h"

struct qutc_row {
    uint32_t pc_rel; // pc - text_start
    uint32_t rule_id;
};

struct qutc_row_list {
    struct qutc_row *rows;
    size_t count;
    size_t capacity;
};

void qutc_row_list_free(struct qutc_row_list *list);

// Makes room for `extra` more rows. Returns 0, or -1 with *error filled (no memory).
int qutc_row_list_reserve(struct qutc_row_list *list, size_t extra, struct qutc_error *error);

// From pc_rel on, rule_id holds. pc_rel must not be below the last row's; at the same pc the new rule replaces the old
// one; a rule equal to the one in force adds nothing. Room must have been reserved.
static inline void qutc_row_list_put(struct qutc_row_list *list, uint32_t pc_rel, uint32_t rule_id)
{
    if (list->count && list->rows[list->count - 1].pc_rel == pc_rel)
        list->count--;
    if (list->count && list->rows[list->count - 1].rule_id == rule_id)
        return;
    list->rows[list->count++] = (struct qutc_row){pc_rel, rule_id};
}

#endif
