// SPDX-License-Identifier: Apache-2.0
#include "libqut/runtime/rule_eval.h"

#include "libqut/runtime/rule_eval_inline.h"

static bool frame_register(void *frame, unsigned reg, uint64_t *value)
{
    const struct qut_frame_regs *regs = frame;
    if (reg == QUT_VECTOR_BYTES) {
        *value = regs->vector_bytes;
        return regs->vector_bytes != 0;
    }
    if (reg >= QUT_REGISTERS_MAX || !(regs->valid >> reg & 1))
        return false;
    *value = regs->reg[reg];
    return true;
}

enum qut_eval_result qut_rule_eval(const struct qut_arch *arch, const struct qut_rule *rule,
                                   const struct qut_frame_regs *frame, qut_read_word read, void *context,
                                   struct qut_frame_regs *caller, uint64_t *cfa)
{
    struct qut_frame_regs regs = *frame; // caller and frame may be the same object
    struct qut_evaluation evaluation = {
        .reg = frame_register,
        .frame = &regs,
        .pc = regs.pc,
        .read = read,
        .context = context,
        .word_mask = arch->word_bytes == 8 ? UINT64_MAX : UINT32_MAX,
    };
    struct qut_caller found;
    enum qut_eval_result result = qut_rule_eval_inline(arch, rule, &evaluation, &found, cfa);
    if (result != QUT_EVAL_OK)
        return result;
    caller->pc = found.pc;
    caller->valid = found.valid;
    caller->reg[arch->sp_reg] = found.sp;
    for (unsigned slot = 0; slot < arch->tracked_count; slot++)
        if (found.valid >> arch->tracked[slot] & 1)
            caller->reg[arch->tracked[slot]] = found.tracked[slot];
    return QUT_EVAL_OK;
}
