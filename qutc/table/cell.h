// SPDX-License-Identifier: Apache-2.0
// Rules as table cells: 16 bytes for almost all of them, seven cells for the rest.
#ifndef QUTC_TABLE_CELL_H
#define QUTC_TABLE_CELL_H

#include "formats/qut_table.h"
#include "libqut/arch/arch.h"

// Puts a rule into cells; returns how many (1 or QUT_LONG_CELLS).
unsigned table_cell_make(const struct arch *arch, const struct qut_rule *rule,
                         union qut_table_cell cells[QUT_LONG_CELLS]);

// A cell's flags with padding in front of its rule.
static inline uint8_t table_cell_padded(uint8_t flags, enum qut_cell_align align)
{
    return (uint8_t)(flags | (unsigned)align << QUT_CELL_ALIGN_SHIFT);
}

#endif
