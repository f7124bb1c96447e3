// SPDX-License-Identifier: Apache-2.0
#ifndef QUTC_TABLE_ROW_MERGE_H
#define QUTC_TABLE_ROW_MERGE_H

#include <stdbool.h>

#include "qutc/cfi/row_list.h"
#include "qutc/cfi/rule_set.h"

// Fills the holes of `first` from `second`: where first describes a pc at all, it wins, even by a refusal.
int table_rows_fill_holes(struct cfi_row_list *first, const struct cfi_row_list *second, struct base_error *error);

// The same, and second comes before rules of `first` for which `yields` says so.
int table_rows_refine(struct cfi_row_list *first, const struct cfi_row_list *second, const struct cfi_rule_set *rules,
                      bool (*yields)(const struct qut_rule *rule), struct base_error *error);

#endif
