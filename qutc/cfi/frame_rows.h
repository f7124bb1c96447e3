// SPDX-License-Identifier: Apache-2.0
// One section of frame programs -> rows.
#ifndef QUTC_CFI_FRAME_ROWS_H
#define QUTC_CFI_FRAME_ROWS_H

#include "qutc/cfi/frame_program.h"

struct cfi_frame_counts {
    uint64_t fdes, cies, rows;
    uint64_t skipped, outside_text, overlaps;
    struct base_error first_skipped;
};

// Appends the rows of one section to `rows` (empty on entry): ascending, holes included, the last row a hole.
//
// Where FDEs overlap, the one that begins last wins, as in a search for the greatest start; where it ends, the outer
// one holds again. Of two that begin at the same pc, the first in the section wins.
int cfi_frame_rows_read(const struct input_image *image, const struct input_frame_section *section, uint64_t text_start,
                        uint64_t text_end, struct cfi_rule_set *rules, struct cfi_row_list *rows,
                        struct cfi_frame_counts *counts, struct base_error *error);

#endif
