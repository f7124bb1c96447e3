// SPDX-License-Identifier: Apache-2.0
// Rules, interned: equal rules have one id. The readers of unwind information speak in rule ids.
#ifndef QUTC_CFI_RULE_SET_H
#define QUTC_CFI_RULE_SET_H

#include "formats/qut_rule.h"
#include "qutc/base/error.h"

enum {
    QUTC_RULE_HOLE_ID = 0, // every set begins with the hole
    QUTC_RULE_NO_MEMORY = 0xffffffff,
};

struct qutc_rule_set {
    struct qut_rule *rules; // by id
    uint32_t count;
    uint32_t capacity;
    uint32_t *buckets; // open addressing, id + 1; 0 = empty
    uint32_t bucket_count;
};

int qutc_rule_set_init(struct qutc_rule_set *set, struct qutc_error *error);
void qutc_rule_set_free(struct qutc_rule_set *set);

// The id of a rule, added where new; QUTC_RULE_NO_MEMORY where that fails. All padding and unused fields must be zero:
// start from qutc_rule_hole() / qutc_rule_refused() / a zeroed struct with kind FRAME.
uint32_t qutc_rule_set_intern(struct qutc_rule_set *set, const struct qut_rule *rule);

static inline struct qut_rule qutc_rule_refused(enum qut_refusal reason)
{
    return (struct qut_rule){.kind = QUT_RULE_REFUSED, .reason = (uint8_t)reason, .dex_pc_reg = QUT_NO_REGISTER};
}

static inline struct qut_rule qutc_rule_hole(void)
{
    return (struct qut_rule){.kind = QUT_RULE_HOLE, .dex_pc_reg = QUT_NO_REGISTER};
}

#endif
