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

// Writes at the end of a list in which room has been reserved. A value, so that a loop can keep it in registers.
struct qutc_row_writer {
    struct qutc_row *first;
    struct qutc_row *end;
};

static inline struct qutc_row_writer qutc_row_writer(const struct qutc_row_list *list)
{
    return (struct qutc_row_writer){list->rows, list->rows + list->count};
}

static inline void qutc_row_writer_done(struct qutc_row_writer writer, struct qutc_row_list *list)
{
    list->count = (size_t)(writer.end - writer.first);
}

// From pc_rel on, rule_id holds. pc_rel must not be below the last row's; at the same pc the new rule replaces the old
// one; a rule equal to the one in force adds nothing.
static inline void qutc_row_writer_put(struct qutc_row_writer *writer, uint32_t pc_rel, uint32_t rule_id)
{
    if (writer->end != writer->first && writer->end[-1].pc_rel == pc_rel)
        writer->end--;
    if (writer->end != writer->first && writer->end[-1].rule_id == rule_id)
        return;
    *writer->end++ = (struct qutc_row){pc_rel, rule_id};
}

// One row.
static inline void qutc_row_list_put(struct qutc_row_list *list, uint32_t pc_rel, uint32_t rule_id)
{
    struct qutc_row_writer writer = qutc_row_writer(list);
    qutc_row_writer_put(&writer, pc_rel, rule_id);
    qutc_row_writer_done(writer, list);
}

#endif
