// SPDX-License-Identifier: Apache-2.0
// Arm EHABI: .ARM.exidx and .ARM.extab -> rows. One rule per function, exact in its body only.
#ifndef QUTC_CFI_EXIDX_H
#define QUTC_CFI_EXIDX_H

#include "qutc/cfi/row_list.h"
#include "qutc/cfi/rule_set.h"
#include "qutc/input/image.h"

struct cfi_exidx_counts {
    uint32_t functions;
    uint32_t cantunwind;
    uint32_t refused;
    uint32_t out_of_order; // entries whose address goes backwards or leaves the text: passed over
};

// Appends the rows of one .ARM.exidx section to `rows` (empty on entry), text_start .. text_end. An entry's function
// ends where the next entry's begins, and nowhere outside the executable ranges of the image. Neighbouring functions
// with the same rule keep separate rows only where the table needs to know the function's start; see the .c file.
int cfi_exidx_read(const struct input_image *image, const struct input_frame_section *section, uint64_t text_start,
                   uint64_t text_end, struct cfi_rule_set *rules, struct cfi_row_list *rows,
                   struct cfi_exidx_counts *counts, struct base_error *error);

#endif
