// SPDX-License-Identifier: Apache-2.0
// The rows of one image, from all that describes its code: the first part of compiling.
#ifndef QUTC_ROWS_H
#define QUTC_ROWS_H

#include "qutc/qutc.h"

struct qutc_rows {
    const struct input_image *image;
    struct qutc_compile_stats *stats;
    struct base_error *error;
    uint64_t text_start, text_end;
    struct cfi_rule_set rules;
    struct cfi_row_list rows;   // so far
    struct cfi_row_list mended; // with keep_mended: those that came before what is stated
    uint32_t flags;             // enum qut_table_flag
    enum code_fill_extent fill; // holes are filled with what the code says
    bool keep_mended;
    bool check;     // each function's rows are held against its code, not only where that is cheap
    bool as_stated; // nothing of what unwind information says is bettered
};

// image, stats, error and fill are filled, all else is zero. Free with qutc_rows_free, whatever it returns.
int qutc_rows_read(struct qutc_rows *c);
void qutc_rows_free(struct qutc_rows *c);

#endif
