// SPDX-License-Identifier: Apache-2.0
// Rows for code of which something wrong is stated, where following it proves what is so; and refusals where nothing
// stated is so for want of one frame to state it of.
#ifndef QUTC_CODE_MEND_H
#define QUTC_CODE_MEND_H

#include "base/error.h"
#include "qutc/cfi/row_list.h"
#include "qutc/cfi/rule_set.h"
#include "qutc/input/image.h"

struct code_mend_counts {
    uint64_t functions;    // that were followed for this
    uint64_t instructions; // whose rule is the code's
    uint64_t doubtful;     // whose rule is as stated, while the code says otherwise
    uint64_t exchanges;    // functions that leave for a frame that catches (eh_return): refused from where that begins
};

// Rows to come before `stated`, with holes where that stays: always the refusals, with `check` what following all
// functions proves, and what is stated, as doubtful, where they say otherwise without a proof. None of OAT files, and
// those of functions not on x86. [allocates; any threads]. -1: no memory.
int code_mend(const struct input_image *image, uint64_t text_start, uint64_t text_end,
              const struct cfi_row_list *stated, struct cfi_rule_set *rules, bool check, struct cfi_row_list *rows,
              struct code_mend_counts *counts, struct base_error *error);

#endif
