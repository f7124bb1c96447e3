// SPDX-License-Identifier: Apache-2.0
// Cells that all tables of an architecture share: the rules that most of its code has. A table names them without
// holding them; half of a small one were cells otherwise. They are part of the format: a version keeps those it has, in
// their order, and may append. Made by tests/support/make_standard_cells from many files' tables.
#ifndef QUT_FORMATS_QUT_STANDARD_CELLS_H
#define QUT_FORMATS_QUT_STANDARD_CELLS_H

#include "formats/qut_table.h"

#pragma GCC visibility push(hidden)

struct qut_standard_cells {
    const union qut_table_cell *cells; // the first is the hole
    uint32_t count;
};

// None of an architecture that is unknown. Signal-safe, no allocation, any thread.
struct qut_standard_cells qut_standard_cells(enum qut_arch_id arch);

enum {
    QUT_STANDARD_X86_64 = 800,
    QUT_STANDARD_AARCH64 = 800,
    QUT_STANDARD_ARM = 800,
    QUT_STANDARD_X86 = 800,
    QUT_STANDARD_RISCV64 = 779,
};
extern const union qut_table_cell qut_standard_cells_x86_64[QUT_STANDARD_X86_64];
extern const union qut_table_cell qut_standard_cells_aarch64[QUT_STANDARD_AARCH64];
extern const union qut_table_cell qut_standard_cells_arm[QUT_STANDARD_ARM];
extern const union qut_table_cell qut_standard_cells_x86[QUT_STANDARD_X86];
extern const union qut_table_cell qut_standard_cells_riscv64[QUT_STANDARD_RISCV64];

#pragma GCC visibility pop

#endif
