// SPDX-License-Identifier: Apache-2.0
#ifndef QUTC_CFI_PLT_H
#define QUTC_CFI_PLT_H

#include "qutc/cfi/row_list.h"
#include "qutc/cfi/rule_set.h"
#include "qutc/input/image.h"

// Rows for the procedure linkage tables of link-register architectures. Their linkers emit no CFI for them, and a
// quarter percent of the executed instructions of an ordinary program lie there. `rows` is empty on entry.
int cfi_plt_rows(const struct input_image *image, uint64_t text_start, uint64_t text_end, struct cfi_rule_set *rules,
                 struct cfi_row_list *rows, struct base_error *error);

#endif
