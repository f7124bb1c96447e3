// SPDX-License-Identifier: Apache-2.0
// Which symbol gets which code: the most used ones get the one-byte codes. And which cells are the table's own: those
// that are no standard ones, and those that are, but are used so often that a code of one byte is worth a cell.
#ifndef QUTC_TABLE_CODES_H
#define QUTC_TABLE_CODES_H

#include "qutc/table/draft.h"

struct table_code {
    uint8_t bytes[4]; // in file order: the lead is the last
    uint32_t size;
};

struct table_codes {
    struct table_code *of_symbol; // size 0: not used
    struct table_code *of_run;
    uint32_t *cell_order; // symbols with own cells, by ascending place of their (first) cell
    uint32_t own_symbols;
    uint32_t cell_count; // own ones
    uint32_t *run_order;
    uint32_t used_runs;
    struct qut_table_leads leads;
    uint8_t hole; // its code
};

// By the uses of symbols and runs.
int table_codes_assign(struct table_codes *codes, struct table_draft *draft, struct base_error *error);
void table_codes_free(struct table_codes *codes);

#endif
