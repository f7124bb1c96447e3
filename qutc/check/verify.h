// SPDX-License-Identifier: Apache-2.0
// Proof by comparison: a QUT table against independent readers of the same image, at every pc where either side's
// answer changes. What is compared are values, for two sets of random registers and memory: cfa, ra, sp, the tracked
// registers, and the marks (signal frame, signed return address, dex pc, body only).
#ifndef QUTC_CHECK_VERIFY_H
#define QUTC_CHECK_VERIFY_H

#include "libqut/runtime/table.h"
#include "qutc/base/error.h"
#include "qutc/input/image.h"
#include "qutc/table/rule_text.h"

enum {
    QUTC_JUDGES_COUNT = 3,
    QUTC_JUDGE_LIBDW = 1,
    QUTC_JUDGE_LIBDWARF = 2,
    QUTC_JUDGE_READELF = 4,
    QUTC_JUDGES_ALL = 7,
    QUTC_ABSTAIN_REASONS_MAX = 12,
    QUTC_FINDINGS_MAX = 64,
};

struct qutc_judge_count {
    const char *name;
    uint64_t rows;      // judged
    uint64_t abstained; // with a reason below; reasons beyond the bound only count here
    struct {
        char text[96];
        uint64_t rows;
    } reasons[QUTC_ABSTAIN_REASONS_MAX];
};

// A difference: the table is wrong, or the judges dispute.
struct qutc_finding {
    uint64_t pc, end;
    bool disputed;
    char text[200];                  // "cfa: table 0x1f0, libdw 0x1f8"
    char rule[QUTC_RULE_TEXT_BYTES]; // the table's rule
};

// A row is an interval [pc, end) in which neither side changes and at least one side has something to say:
//   rows = exact + refused + wrong + disputed
struct qutc_verify_result {
    uint64_t rows;
    uint64_t exact;
    uint64_t refused; // the table refuses where a judge has a row
    uint64_t wrong;
    uint64_t disputed;  // the judges of one section contradict each other
    uint64_t abstained; // intervals that no judge could judge: not rows
    uint64_t
        plt_leaf; // intervals of .plt sections without information, for which the table has the leaf rule: not rows
    uint64_t oat_headers; // intervals of an OAT file's methods that only their headers describe: no judge reads those
    uint64_t holes;       // intervals where both sides have nothing: not rows
    uint64_t refused_by_reason[QUT_REFUSAL_END];
    struct qutc_judge_count judges[QUTC_JUDGES_COUNT];
    struct qutc_finding findings[QUTC_FINDINGS_MAX]; // the first ones
    unsigned finding_count;
};

// judges_mask: which of QUTC_JUDGE_*. Fails only where nothing could be compared; differences are in *result.
int qutc_verify(const struct qut_table *table, const struct qutc_image *image, unsigned judges_mask,
                struct qutc_verify_result *result, struct qutc_error *error);

#endif
