// SPDX-License-Identifier: Apache-2.0
// What unwind information states, held against what the code does: where each instruction of a function that can be
// followed on all its ways has a stated rule, whether that rule gives the caller.
#ifndef QUTC_LINT_H
#define QUTC_LINT_H

#include "qutc/code/compare.h"
#include "qutc/qutc.h"

struct qutc_lint_finding {
    uint64_t pc, end;     // virtual addresses of the file: instructions with one difference, in their order
    uint64_t function;    // where its function begins
    const char *name;     // of that, in the image: not demangled, not ended by 0
    uint16_t name_length; // 0: no symbol names it
    uint32_t instructions;
    uint8_t reg; // what differs: QUT_NO_REGISTER the CFA, else a register
    struct qut_rule stated;
    struct qut_rule followed;
    bool has_followed; // else the code says that it differs, not what is true
};

struct qutc_lint_result {
    uint64_t functions;                  // that were looked at
    uint64_t outcomes[CODE_OUTCOME_END]; // of them
    uint64_t instructions;               // of functions that were followed
    uint64_t spoiled;                    // functions in which something differs
    uint64_t agree, differ, unjudged;    // ... where something is stated
    uint64_t unstated;                   // ... where nothing is
    uint64_t first[CODE_OUTCOME_END];    // address of the first function with that outcome
    BASE_VECTOR(struct qutc_lint_finding) findings;
};

// Fails where there is no code, or none that is followed on this architecture.
int qutc_lint(const struct input_image *image, struct qutc_lint_result *result, struct base_error *error);
void qutc_lint_free(struct qutc_lint_result *result);

#endif
