// SPDX-License-Identifier: Apache-2.0
#ifndef QUTC_TABLE_ROW_MERGE_H
#define QUTC_TABLE_ROW_MERGE_H

#include "qutc/cfi/row_list.h"

// Fills the holes of `first` from `second`: where first describes a pc at all, it wins, even by a refusal.
int table_rows_fill_holes(struct cfi_row_list *first, const struct cfi_row_list *second, struct base_error *error);

#endif
