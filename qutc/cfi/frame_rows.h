// SPDX-License-Identifier: Apache-2.0
// One section of frame programs -> rows.
#ifndef QUTC_CFI_FRAME_ROWS_H
#define QUTC_CFI_FRAME_ROWS_H

#include "qutc/cfi/program.h"

struct qutc_frame_counts {
    uint64_t fdes, cies, rows;
    uint64_t skipped, outside_text, overlaps;
    struct qutc_error first_skipped;
};

// Appends the rows of one section to `rows` (empty on entry): ascending, holes included, the last row a hole.
//
// Where FDEs overlap, the one that begins last wins, as in a search for the greatest start; where it ends, the outer
// one holds again. Of two that begin at the same pc, the first in the section wins.
int qutc_frame_rows_read(const struct qutc_image *image, const struct qutc_frame_section *section, uint64_t text_start,
                         uint64_t text_end, struct qutc_rule_set *rules, struct qutc_row_list *rows,
                         struct qutc_frame_counts *counts, struct qutc_error *error);

#endif
