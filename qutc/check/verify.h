// SPDX-License-Identifier: Apache-2.0
// Proof by comparison: a QUT table against independent readers of the same image, at every pc where either side's
// answer changes. What is compared are values, for two sets of random registers and memory: cfa, ra, sp, the tracked
// registers, and the marks (signal frame, signed return address, dex pc, body only).
#ifndef QUTC_CHECK_VERIFY_H
#define QUTC_CHECK_VERIFY_H

#include "base/error.h"
#include "libqut/runtime/table.h"
#include "qutc/cfi/row_list.h"
#include "qutc/cfi/rule_set.h"
#include "qutc/input/image.h"
#include "qutc/table/rule_text.h"

enum {
    CHECK_JUDGES_COUNT = 3,
    CHECK_JUDGE_LIBDW = 1,
    CHECK_JUDGE_LIBDWARF = 2,
    CHECK_JUDGE_READELF = 4,
    CHECK_JUDGES_ALL = 7,
    CHECK_ABSTAIN_REASONS_MAX = 12,
    CHECK_FINDINGS_MAX = 64,
};

struct check_judge_count {
    const char *name;
    uint64_t rows;      // judged
    uint64_t abstained; // with a reason below; reasons beyond the bound only count here
    struct {
        char text[96];
        uint64_t rows;
    } reasons[CHECK_ABSTAIN_REASONS_MAX];
};

// A difference: the table is wrong, or the judges dispute.
struct check_finding {
    uint64_t pc, end;
    bool disputed;
    char text[200];                   // "cfa: table 0x1f0, libdw 0x1f8"
    char rule[TABLE_RULE_TEXT_BYTES]; // the table's rule
};

// A row is an interval [pc, end) in which neither side changes and at least one side has something to say:
//   rows = exact + refused + wrong + disputed
struct check_verify_result {
    uint64_t rows;
    uint64_t exact;
    uint64_t refused; // the table refuses where a judge has a row
    uint64_t wrong;
    uint64_t disputed;  // the judges of one section contradict each other
    uint64_t abstained; // intervals that no judge could judge: not rows; of Go programs also what none knows of
    uint64_t
        plt_leaf; // intervals of .plt sections without information, for which the table has the leaf rule: not rows
    uint64_t oat_headers; // intervals of an OAT file's methods that only their headers describe: no judge reads those
    uint64_t from_code;   // intervals that nothing describes well, whose rule is from following the code: not rows
    uint64_t doubtful;    // of exact: as stated, while the code says otherwise without proving it
    uint64_t mended;      // intervals whose rule the code proves against what is stated, followed anew: not rows
    uint64_t holes;       // intervals where both sides have nothing: not rows
    uint64_t refused_by_reason[QUT_REFUSAL_END];
    struct check_judge_count judges[CHECK_JUDGES_COUNT];
    struct check_finding findings[CHECK_FINDINGS_MAX]; // the first ones
    unsigned finding_count;
};

// Where the code contradicts what readers read (code_mend): what the table must say there instead.
struct check_mended {
    uint64_t text_start;
    const struct cfi_row_list *rows;
    const struct cfi_rule_set *rules;
};

// judges_mask: which of CHECK_JUDGE_*. Fails only where nothing could be compared; differences are in *result.
int check_verify(const struct qut_table *table, const struct input_image *image, unsigned judges_mask,
                 struct check_verify_result *result, struct base_error *error);
// The same of a table that was made so. mended: NULL, there is nothing of the kind.
int check_verify_mended(const struct qut_table *table, const struct input_image *image, unsigned judges_mask,
                        const struct check_mended *mended, struct check_verify_result *result,
                        struct base_error *error);

#endif
