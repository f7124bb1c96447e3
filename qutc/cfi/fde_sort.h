// SPDX-License-Identifier: Apache-2.0
#ifndef QUTC_CFI_FDE_SORT_H
#define QUTC_CFI_FDE_SORT_H

#include "qutc/cfi/frame_section.h"

// Ascending by start; at equal starts the later in the section comes first, so that the earlier one, put on top of it,
// wins. Linear. Returns -1 where memory lacks.
int qutc_fdes_sort(struct qutc_fde *fdes, size_t count);

#endif
