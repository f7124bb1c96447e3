// SPDX-License-Identifier: Apache-2.0
// Which rules the format's readers have already (formats/qut_standard_cells.h).
#ifndef QUTC_TABLE_STANDARD_H
#define QUTC_TABLE_STANDARD_H

#include "formats/qut_standard_cells.h"

enum { TABLE_STANDARD_SLOTS = 2048, TABLE_STANDARD_NONE = UINT16_MAX };

struct table_standard {
    struct qut_standard_cells known;
    uint16_t slots[TABLE_STANDARD_SLOTS]; // open addressing: number of a cell where a rule begins; 0 empty
};

void table_standard_init(struct table_standard *standard, enum qut_arch_id arch);

// The number of the standard cell in which the rule in `count` cells begins; TABLE_STANDARD_NONE: there is none.
uint16_t table_standard_find(const struct table_standard *standard, const union qut_table_cell *cells, uint32_t count);

#endif
