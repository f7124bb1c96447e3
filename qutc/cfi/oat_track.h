// SPDX-License-Identifier: Apache-2.0
// One compiled method: header + code -> rows. What the header says is true in the body; where the body begins and ends,
// the code says.
#ifndef QUTC_CFI_OAT_TRACK_H
#define QUTC_CFI_OAT_TRACK_H

#include "qutc/cfi/oat_code.h"
#include "qutc/cfi/oat_header.h"
#include "qutc/cfi/row_list.h"
#include "qutc/cfi/rule_set.h"

enum cfi_oat_certainty {
    CFI_OAT_EXACT,     // every row is true at every instruction
    CFI_OAT_BODY_ONLY, // the prologue is none that we know: one row, true at calls
    CFI_OAT_PARTLY,    // exact up to where the code does what we do not follow, refused from there on
    CFI_OAT_REFUSED,
    CFI_OAT_CERTAINTIES,
};

// Appends the method's rows to `rows`: from pc_rel (its first instruction's) on, in the end a hole. Returns the
// certainty, or -1 with *error filled (no memory).
int cfi_oat_method_rows(const struct arch *arch, const struct cfi_oat_method *method, struct base_bytes code,
                        uint32_t pc_rel, struct cfi_rule_set *rules, struct cfi_row_list *rows,
                        struct base_error *error);

// The rule in the method's body.
struct qut_rule cfi_oat_body_rule(const struct arch *arch, const struct cfi_oat_method *method);

#endif
