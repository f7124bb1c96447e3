// SPDX-License-Identifier: Apache-2.0
// Rules, interned: equal rules have one id. The readers of unwind information speak in rule ids.
#ifndef QUTC_CFI_RULE_SET_H
#define QUTC_CFI_RULE_SET_H

#include "base/error.h"
#include "base/hash_index.h"
#include "base/vector.h"
#include "formats/qut_rule.h"

enum {
    CFI_RULE_HOLE_ID = 0, // every set begins with the hole
    CFI_RULE_NO_MEMORY = 0xffffffff,
};

struct cfi_rule_set {
    BASE_VECTOR_AS(struct qut_rule, rules); // by id
    struct base_hash_index index;
};

int cfi_rule_set_init(struct cfi_rule_set *set, struct base_error *error);
void cfi_rule_set_free(struct cfi_rule_set *set);

// The id of a rule, added where new; CFI_RULE_NO_MEMORY where that fails. All padding and unused fields must be zero:
// start from cfi_rule_hole() / cfi_rule_refused() / a zeroed struct with kind FRAME.
uint32_t cfi_rule_set_intern(struct cfi_rule_set *set, const struct qut_rule *rule);

static inline struct qut_rule cfi_rule_refused(enum qut_refusal reason)
{
    return (struct qut_rule){.kind = QUT_RULE_REFUSED, .reason = (uint8_t)reason, .dex_pc_reg = QUT_NO_REGISTER};
}

static inline struct qut_rule cfi_rule_hole(void)
{
    return (struct qut_rule){.kind = QUT_RULE_HOLE, .dex_pc_reg = QUT_NO_REGISTER};
}

#endif
