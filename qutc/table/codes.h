// SPDX-License-Identifier: Apache-2.0
// Which symbol gets which code: the most used ones get the one-byte codes.
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
    uint32_t *cell_order; // symbols by ascending id of their (first) cell
    uint32_t used_symbols;
    uint32_t cell_count;
    uint32_t *run_order;
    uint32_t used_runs;
    uint8_t short_rules, short_runs, long_rule_leads;
};

// By the uses of symbols and runs.
int table_codes_assign(struct table_codes *codes, struct table_draft *draft, struct base_error *error);
void table_codes_free(struct table_codes *codes);

#endif
