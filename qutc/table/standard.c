// SPDX-License-Identifier: Apache-2.0
#include "qutc/table/standard.h"

#include <stdbool.h>
#include <string.h>

// All of them, and half of the slots stay empty.
static_assert(QUT_STANDARD_X86_64 <= TABLE_STANDARD_SLOTS / 2 && QUT_STANDARD_AARCH64 <= TABLE_STANDARD_SLOTS / 2 &&
                  QUT_STANDARD_ARM <= TABLE_STANDARD_SLOTS / 2 && QUT_STANDARD_X86 <= TABLE_STANDARD_SLOTS / 2 &&
                  QUT_STANDARD_RISCV64 <= TABLE_STANDARD_SLOTS / 2,
              "a search ends soon");

static uint32_t cell_count(const union qut_table_cell *cells)
{
    return cells->rule.form == QUT_CELL_LONG ? QUT_LONG_CELLS : 1;
}

static unsigned first_slot(const union qut_table_cell *cells, uint32_t count)
{
    uint64_t hash = 0;
    for (uint32_t i = 0; i < count; i++) {
        uint64_t halves[2];
        memcpy(halves, &cells[i], sizeof halves);
        hash = (hash ^ halves[0]) * 0x9fb21c651e98df25u;
        hash = (hash ^ hash >> 29 ^ halves[1]) * 0x9fb21c651e98df25u;
    }
    return (unsigned)(hash >> 40) % TABLE_STANDARD_SLOTS;
}

void table_standard_init(struct table_standard *standard, enum qut_arch_id arch)
{
    *standard = (struct table_standard){.known = qut_standard_cells(arch)};
    // The hole, number 0, is found without.
    for (uint32_t number = 1; number < standard->known.count; number += cell_count(&standard->known.cells[number])) {
        const union qut_table_cell *cells = &standard->known.cells[number];
        unsigned slot = first_slot(cells, cell_count(cells));
        while (standard->slots[slot])
            slot = (slot + 1) % TABLE_STANDARD_SLOTS;
        standard->slots[slot] = (uint16_t)number;
    }
}

uint16_t table_standard_find(const struct table_standard *standard, const union qut_table_cell *cells, uint32_t count)
{
    if (cells->rule.form == QUT_CELL_HOLE)
        return standard->known.count ? 0 : TABLE_STANDARD_NONE;
    for (unsigned slot = first_slot(cells, count); standard->slots[slot]; slot = (slot + 1) % TABLE_STANDARD_SLOTS) {
        const union qut_table_cell *known = &standard->known.cells[standard->slots[slot]];
        if (cell_count(known) == count && memcmp(known, cells, count * sizeof *cells) == 0)
            return standard->slots[slot];
    }
    return TABLE_STANDARD_NONE;
}
