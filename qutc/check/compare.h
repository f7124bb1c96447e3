// SPDX-License-Identifier: Apache-2.0
// One comparison: what a table's rule yields for a frame, and whether a judge's answer is the same.
#ifndef QUTC_CHECK_COMPARE_H
#define QUTC_CHECK_COMPARE_H

#include "qutc/check/judge.h"

enum { CHECK_CONTEXTS = 2 };

// Registers and memory that no rule can mistake for others: all registers known, each word a hash of its address.
struct check_context {
    uint64_t seed;
    struct arch_frame_regs frame;
};

void check_context_init(struct check_context *context, const struct arch *arch, uint64_t seed);
// Moves it to a pc; the register that is the pc goes along.
void check_context_set_pc(struct check_context *context, const struct arch *arch, uint64_t pc);
bool check_context_read(void *context, uint64_t address, uint64_t *value);

// The table's answer as a judge would give it. NO_ROW for a hole, ABSTAIN for a rule that cannot be evaluated.
void check_rule_judgement(const struct arch *arch, const struct qut_rule *rule, struct check_context *context,
                          struct check_judgement *judgement);

// Whether two answers are the same; what one of them does not know is not compared. Else text says what differs.
bool check_judgements_equal(const struct arch *arch, const struct check_judgement *left, const char *record_left_name,
                            const struct check_judgement *right, const char *right_name, char *text,
                            unsigned text_size);

#endif
