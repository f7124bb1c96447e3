// SPDX-License-Identifier: Apache-2.0
// One compiled method: header + code -> rows. What the header says is true in the body; where the body begins and ends,
// the code says.
#ifndef QUTC_CFI_OAT_TRACK_H
#define QUTC_CFI_OAT_TRACK_H

#include "qutc/cfi/oat_code.h"
#include "qutc/cfi/oat_header.h"
#include "qutc/cfi/row_list.h"
#include "qutc/cfi/rule_set.h"

enum qutc_oat_certainty {
    QUTC_OAT_EXACT,     // every row is true at every instruction
    QUTC_OAT_BODY_ONLY, // the prologue is none that we know: one row, true at calls
    QUTC_OAT_PARTLY,    // exact up to where the code does what we do not follow, refused from there on
    QUTC_OAT_REFUSED,
    QUTC_OAT_CERTAINTIES,
};

// Appends the method's rows to `rows`: from pc_rel (its first instruction's) on, in the end a hole. Returns the
// certainty, or -1 with *error filled (no memory).
int qutc_oat_method_rows(const struct qut_arch *arch, const struct qutc_oat_method *method, struct qutc_bytes code,
                         uint32_t pc_rel, struct qutc_rule_set *rules, struct qutc_row_list *rows,
                         struct qutc_error *error);

// The rule in the method's body.
struct qut_rule qutc_oat_body_rule(const struct qut_arch *arch, const struct qutc_oat_method *method);

// Reads this architecture's instructions; NULL where there are no OAT files for it.
qutc_oat_read_fn qutc_oat_reader(const struct qut_arch *arch);

#endif
