// SPDX-License-Identifier: Apache-2.0
// A table in the making: rows that refer to symbols. A symbol is a rule in its cells (perhaps with padding in front of
// it) or a run of rows that many places share.
#ifndef QUTC_TABLE_DRAFT_H
#define QUTC_TABLE_DRAFT_H

#include "formats/qut_table.h"
#include "libqut/arch/arch.h"
#include "qutc/cfi/row_list.h"
#include "qutc/cfi/rule_set.h"

#define QUTC_SYMBOL_RUN 0x80000000u // a row's rule_id names a run

struct qutc_symbol {
    union qut_table_cell cells[QUT_LONG_CELLS];
    uint32_t cell_count;
    uint32_t uses;    // rows that refer to it, in the list and in runs; kept up to date by whoever changes rows
    uint32_t rule_id; // of the rule set
};

struct qutc_run { // rows[first .. first + count), pcs relative to the first
    uint32_t first;
    uint32_t count;
    uint32_t uses;
};

struct qutc_draft {
    const struct qut_arch *arch;
    unsigned pc_shift;
    uint64_t text_start;
    uint64_t text_size;
    // rule_id: index of a symbol, or QUTC_SYMBOL_RUN | index of a run. The table's rows are those from first_row on,
    // and its text begins at their pc_rel start_rel.
    struct qutc_row_list rows;
    size_t first_row;
    uint32_t start_rel;
    uint32_t *holes; // indexes of the rows that are holes and have a successor
    size_t hole_count;
    struct qutc_symbol *symbols;
    uint32_t symbol_count, symbol_capacity;
    struct qutc_run *runs;
    uint32_t run_count;
    struct qutc_row_list run_rows;

    // Of the rows, before they were packed.
    uint32_t row_count, rule_count, refused_rows, hole_rows;
    uint64_t covered_bytes, refused_bytes;
};

// Takes over the rows (their ids are those of the set). pc_shift is chosen so that every row starts on a unit.
int qutc_draft_init(struct qutc_draft *draft, const struct qut_arch *arch, uint64_t text_start, uint64_t text_end,
                    const struct qutc_rule_set *rules, struct qutc_row_list *rows, struct qutc_error *error);
void qutc_draft_free(struct qutc_draft *draft);

// Adds a symbol like another one, for the caller to change. UINT32_MAX: no memory.
uint32_t qutc_draft_copy_symbol(struct qutc_draft *draft, uint32_t symbol);

// Joins a hole and the function start behind it into one row, where the hole is the padding up to an alignment.
int qutc_draft_join_padding(struct qutc_draft *draft, struct qutc_error *error);

// --small: replaces sequences of rows that occur often by runs.
int qutc_draft_share_runs(struct qutc_draft *draft, struct qutc_error *error);

#endif
