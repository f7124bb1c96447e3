// SPDX-License-Identifier: Apache-2.0
#ifndef QUTC_CFI_FDE_SORT_H
#define QUTC_CFI_FDE_SORT_H

#include "qutc/cfi/frame_section.h"

// The order in which FDEs are to be run: ascending by start; at equal starts the later in the section comes first, so
// that the earlier one, put on top of it, wins. Linear. *order (count indexes) is NULL where they stand in that order
// already; else the caller frees it. Returns -1 where memory lacks.
int cfi_fdes_order(const struct cfi_fde *fdes, size_t count, uint32_t **order);

#endif
