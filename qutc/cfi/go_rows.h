// SPDX-License-Identifier: Apache-2.0
#ifndef QUTC_CFI_GO_ROWS_H
#define QUTC_CFI_GO_ROWS_H

#include "qutc/cfi/row_list.h"
#include "qutc/cfi/rule_set.h"
#include "qutc/input/go_functions.h"
#include "qutc/input/image.h"

struct cfi_go_counts {
    uint64_t functions;
    uint64_t malformed; // left out: their part of the table cannot be read, or does not fit the others
};

enum cfi_go_part {
    CFI_GO_ALL,
    CFI_GO_SPECIALS, // only those of which .debug_frame says what is not so
};

// Rows of a Go program's own functions, by the table that its runtime walks with: exact at each instruction. Functions
// that move sp to another stack are refused, with what it takes to go on. `rows` is empty on entry, and stays so where
// there is no such table.
int cfi_go_rows(const struct input_image *image, enum cfi_go_part part, uint64_t text_start, uint64_t text_end,
                struct cfi_rule_set *rules, struct cfi_row_list *rows, struct cfi_go_counts *counts,
                struct base_error *error);

#endif
