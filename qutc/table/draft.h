// SPDX-License-Identifier: Apache-2.0
// A table in the making: rows that refer to symbols. A symbol is a rule in its cells (perhaps with padding in front of
// it) or a run of rows that many places share.
#ifndef QUTC_TABLE_DRAFT_H
#define QUTC_TABLE_DRAFT_H

#include "formats/qut_table.h"
#include "libqut/arch/arch.h"
#include "qutc/cfi/row_list.h"
#include "qutc/cfi/rule_set.h"
#include "qutc/table/standard.h"

#define TABLE_SYMBOL_RUN 0x80000000u // a row's rule_id names a run

struct table_symbol {
    union qut_table_cell cells[QUT_LONG_CELLS];
    uint32_t cell_count;
    uint16_t standard; // the number of the same standard cell, or TABLE_STANDARD_NONE
    uint32_t uses;     // rows that refer to it, in the list and in runs; kept up to date with every change of rows
    uint32_t rule_id;  // of the rule set
};

struct table_run { // rows[first .. first + count), pcs relative to the first
    uint32_t first;
    uint32_t count;
    uint32_t uses;
};

// Holes between functions, many of which one row can say together with the function behind (padding.c).
struct table_padding {
    uint32_t *holes; // indexes of the rows that are holes and have a successor
    uint8_t *aligns; // of each: enum qut_cell_align
    size_t count;
    uint32_t
        *variants; // by rule and alignment: how many holes are in front of it; then its symbol, 0 where it has none
    size_t joined; // so many are one row with what is behind them
};

struct table_draft {
    const struct arch *arch;
    unsigned pc_shift;
    uint64_t text_start;
    uint64_t text_size;
    // rule_id: index of a symbol, or TABLE_SYMBOL_RUN | index of a run. The table's rows are those from first_row on,
    // and its text begins at their pc_rel start_rel.
    struct cfi_row_list rows;
    size_t first_row;
    uint32_t start_rel;
    struct table_padding padding;
    struct table_standard standard;
    BASE_VECTOR(struct table_symbol) symbols;
    struct table_run *runs;
    uint32_t run_count;
    struct cfi_row_list run_rows;

    // Of the rows, before they were packed.
    uint32_t row_count, rule_count, refused_rows, hole_rows;
    uint64_t covered_bytes, refused_bytes;
};

// Takes over the rows (their ids are those of the set). pc_shift is chosen so that every row starts on a unit.
int table_draft_init(struct table_draft *draft, const struct arch *arch, uint64_t text_start, uint64_t text_end,
                     const struct cfi_rule_set *rules, struct cfi_row_list *rows, struct base_error *error);
void table_draft_free(struct table_draft *draft);

// Adds a symbol like another one, for the caller to change. UINT32_MAX: no memory.
uint32_t table_draft_copy_symbol(struct table_draft *draft, uint32_t symbol);

// ---- padding.c

int table_padding_init(struct table_padding *padding, size_t rule_count, size_t row_count);
void table_padding_free(struct table_padding *padding);
// Looks at the holes from `first` on.
void table_padding_count(struct table_padding *padding, const struct cfi_row *rows, size_t first);

// Decides which holes are joined with the function starts behind them, where they are the padding up to an alignment.
int table_draft_join_padding(struct table_draft *draft, struct base_error *error);

// The rows as they are then, in order, some at a time.
enum { TABLE_ROWS_AT_ONCE = 512, TABLE_ROWS_BEHIND = 4 }; // those may be written, too, and say nothing
struct table_row_reader {
    size_t next, next_hole;
};
struct table_row_reader table_row_reader(const struct table_draft *draft);
size_t table_draft_read(const struct table_draft *draft, struct table_row_reader *reader,
                        struct cfi_row rows[TABLE_ROWS_AT_ONCE + TABLE_ROWS_BEHIND]);

// Makes the draft's own rows so.
void table_draft_settle(struct table_draft *draft);

// ---- runs.c

// --small: settles the rows, and replaces sequences of them that occur often by runs.
int table_draft_share_runs(struct table_draft *draft, struct base_error *error);

#endif
