// SPDX-License-Identifier: Apache-2.0
#include "libqut/runtime/rule_eval.h"

#include "libqut/runtime/rule_eval_inline.h"

enum qut_eval_result qut_rule_eval(const struct qut_arch *arch, const struct qut_rule *rule,
                                   const struct qut_frame_regs *frame, qut_read_word read, void *context,
                                   struct qut_frame_regs *caller, uint64_t *cfa)
{
    return qut_rule_eval_inline(arch, rule, frame, read, context, caller, cfa);
}
