// SPDX-License-Identifier: Apache-2.0
// From what is known at an instruction to the rule of its frame, and back: what a stated rule is worth there.
#ifndef QUTC_CODE_RULE_H
#define QUTC_CODE_RULE_H

#include "formats/qut_rule.h"
#include "qutc/code/state.h"

// False where the caller cannot be found: the CFA or the return address is not known.
bool code_rule_of(const struct code_machine *machine, const struct code_state *state, struct qut_rule *rule);

enum code_verdict {
    CODE_AGREES,
    CODE_UNJUDGED, // the state does not know
    CODE_DIFFERS,
};

// What differs first: QUT_NO_REGISTER the CFA, else a register's DWARF number.
struct code_judgement {
    enum code_verdict verdict;
    uint8_t reg;
    uint64_t gone; // where nothing differs: registers that are stated to be as they were, and hold what is not known
};

// Whether a stated rule gives, in this state, the CFA, the return address and the tracked registers that the function
// was entered with.
struct code_judgement code_judge_rule(const struct code_machine *machine, const struct code_state *state,
                                      const struct qut_rule *rule);

// Whether code says otherwise than a rule that is stated for a function's body, at one of its calls. .ARM.exidx does
// not say of functions that never return that they overwrite registers which they have saved nowhere: to lose them is
// no contradiction.
bool code_contradicts_body(const struct code_machine *machine, const struct code_state *state, struct qut_rule stated);

#endif
