// SPDX-License-Identifier: Apache-2.0
// One comparison: what a table's rule yields for a frame, and whether a judge's answer is the same.
#ifndef QUTC_CHECK_COMPARE_H
#define QUTC_CHECK_COMPARE_H

#include "qutc/check/judge.h"

enum { QUTC_CONTEXTS = 2 };

// Registers and memory that no rule can mistake for others: all registers known, each word a hash of its address.
struct qutc_context {
    uint64_t seed;
    struct qut_frame_regs frame;
};

void qutc_context_init(struct qutc_context *context, const struct qut_arch *arch, uint64_t seed);
// Moves it to a pc; the register that is the pc goes along.
void qutc_context_set_pc(struct qutc_context *context, const struct qut_arch *arch, uint64_t pc);
bool qutc_context_read(void *context, uint64_t address, uint64_t *value);

// The table's answer as a judge would give it. NO_ROW for a hole, ABSTAIN for a rule that cannot be evaluated.
void qutc_rule_judgement(const struct qut_arch *arch, const struct qut_rule *rule, struct qutc_context *context,
                         struct qutc_judgement *judgement);

// Whether two answers are the same; what one of them does not know is not compared. Else text says what differs.
bool qutc_judgements_equal(const struct qut_arch *arch, const struct qutc_judgement *left, const char *left_name,
                           const struct qutc_judgement *right, const char *right_name, char *text, unsigned text_size);

#endif
