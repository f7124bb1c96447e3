// SPDX-License-Identifier: Apache-2.0
// Rows in ascending order of pc: row i holds from its pc up to the next row's. What readers produce and the table
// writer consumes.
#ifndef QUTC_CFI_ROW_LIST_H
#define QUTC_CFI_ROW_LIST_H

#include <stddef.h>
#include <stdint.h>

#include "base/error.h"
#include "base/vector.h"

struct cfi_row {
    uint32_t pc_rel; // pc - text_start
    uint32_t rule_id;
};

struct cfi_row_list {
    BASE_VECTOR_AS(struct cfi_row, rows); // a large one
};

void cfi_row_list_free(struct cfi_row_list *list);

// Makes room for `extra` more rows. Returns 0, or -1 with *error filled (no memory).
int cfi_row_list_reserve(struct cfi_row_list *list, size_t extra, struct base_error *error);

// The row that holds at a pc; SIZE_MAX before the first one.
size_t cfi_row_list_index(const struct cfi_row_list *list, uint32_t pc_rel);
// Its rule; before the first row, 0: the hole.
uint32_t cfi_row_list_at(const struct cfi_row_list *list, uint32_t pc_rel);

// Writes at the end of a list in which room has been reserved. A value, so that a loop can keep it in registers.
struct cfi_row_writer {
    struct cfi_row *first;
    struct cfi_row *end;
    uint32_t last_id; // the rule in force; UINT32_MAX before the first row
};

static inline struct cfi_row_writer cfi_row_writer(const struct cfi_row_list *list)
{
    struct cfi_row *end = list->rows + list->count;
    return (struct cfi_row_writer){list->rows, end, list->count ? end[-1].rule_id : UINT32_MAX};
}

static inline void cfi_row_writer_done(struct cfi_row_writer writer, struct cfi_row_list *list)
{
    list->count = (size_t)(writer.end - writer.first);
}

// What is written next begins at pc_rel, not below the last row, and replaces it where that begins there too.
static inline void cfi_row_writer_begin(struct cfi_row_writer *writer, uint32_t pc_rel)
{
    if (writer->end == writer->first || writer->end[-1].pc_rel != pc_rel)
        return;
    writer->end--;
    writer->last_id = writer->end == writer->first ? UINT32_MAX : writer->end[-1].rule_id;
}

// From pc_rel on, above the last row, rule_id holds. A rule equal to the one in force adds nothing. Without a branch.
static inline void cfi_row_writer_put(struct cfi_row_writer *writer, uint32_t pc_rel, uint32_t rule_id)
{
    const bool is_new = writer->last_id != rule_id;
    *writer->end = (struct cfi_row){pc_rel, rule_id};
    writer->end += is_new;
    writer->last_id = rule_id;
}

// One row, which replaces the last one where that begins at the same pc.
static inline void cfi_row_list_put(struct cfi_row_list *list, uint32_t pc_rel, uint32_t rule_id)
{
    struct cfi_row_writer writer = cfi_row_writer(list);
    cfi_row_writer_begin(&writer, pc_rel);
    cfi_row_writer_put(&writer, pc_rel, rule_id);
    cfi_row_writer_done(writer, list);
}

#endif
