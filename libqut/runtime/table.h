// SPDX-License-Identifier: Apache-2.0
// A QUT table in memory: attach (checked once), then constant-time lookup. The same code serves the compiler, the tests
// and the walker.
#ifndef QUT_RUNTIME_TABLE_H
#define QUT_RUNTIME_TABLE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "formats/qut_rule.h"
#include "formats/qut_table.h"
#include "formats/qut_table_check.h"
#include "formats/qut_table_code_inline.h"

// Only libqut calls these, so calls need no detour.
#pragma GCC visibility push(hidden)

struct qut_table {
    // What each lookup reads, in one cache line. Of the header, too: in a sample of a program that does other work its
    // lines are in no cache.
    uint64_t text_start;
    uint64_t text_size_units; // in units of 1 << pc_shift
    const struct qut_table_group *groups;
    const uint8_t *blocks;
    const union qut_table_cell *cells[QUT_CELL_OWNERS];
    uint8_t pc_shift;
    struct qut_table_leads leads;
    // What some read.
    const uint32_t *run_starts;
    const uint8_t *runs;
    const uint8_t *wides;
    const struct qut_table_header *header;
};

// Checks the bytes and points into them; they must stay, unchanged, as long as the table is used. Aligned to 8.
// Allocates nothing. Linear in the size.
enum qut_table_fault runtime_table_attach(struct qut_table *table, const void *bytes, size_t size,
                                          uint64_t *fault_offset);

// The rule at a pc (a virtual address of the file). Signal-safe, constant time, no allocation, any thread.
// Outside the table's text: a hole.
void runtime_table_rule(const struct qut_table *table, uint64_t pc, struct qut_rule *rule);

// The same for callers that know the form of cells: the one at a pc, which holds up to *row_end (exclusive) at least.
// NULL: a hole. Signal-safe, constant time, no allocation, any thread.
const struct qut_rule_cell *qut_table_cell(const struct qut_table *table, uint64_t pc, uint64_t *row_end);

// Those of a rule id. Signal-safe, constant time, no allocation, any thread.
static inline const union qut_table_cell *runtime_table_cells(const struct qut_table *table, uint32_t id)
{
    const struct qut_cell_place place = qut_cell_place(&table->leads, id);
    return &table->cells[place.owner][place.index];
}

// Where the row in force at a pc begins. For a rule with QUT_RULE_BODY_ONLY that is its function's first instruction,
// where cfa = sp and ra is in its register, or has just been pushed, whatever the rule says; but not where the row
// before it is a frame rule without that mark: then frame programs may describe the function's beginning, and this row
// only what they leave. Signal-safe, no allocation; walks back over the blocks without rows in between.
uint64_t runtime_table_row_start(const struct qut_table *table, uint64_t pc);

// All rows in ascending order. Not for handlers. start with *pc = table->text_start; each call yields the rule in force
// from *pc up to *end (exclusive); false when the text is done. Neighbouring rows with one rule are not joined.
bool runtime_table_next_row(const struct qut_table *table, uint64_t *pc, uint64_t *end, struct qut_rule *rule);

#pragma GCC visibility pop

#endif
