// SPDX-License-Identifier: Apache-2.0
#include "libqut/runtime/rule_eval.h"

#include "libqut/runtime/rule_eval_inline.h"

static bool frame_register(void *frame, unsigned reg, uint64_t *value)
{
    const struct arch_frame_regs *regs = frame;
    if (reg == RUNTIME_VECTOR_BYTES) {
        *value = regs->vector_bytes;
        return regs->vector_bytes != 0;
    }
    if (reg >= ARCH_REGISTERS_MAX || !(regs->valid >> reg & 1))
        return false;
    *value = regs->reg[reg];
    return true;
}

enum runtime_eval_result runtime_rule_eval(const struct arch *arch, const struct qut_rule *rule,
                                           const struct arch_frame_regs *frame, runtime_read_word read, void *context,
                                           struct arch_frame_regs *caller, uint64_t *cfa)
{
    struct arch_frame_regs regs = *frame; // caller and frame may be the same object
    struct runtime_evaluation evaluation = {
        .reg = frame_register,
        .frame = &regs,
        .pc = regs.pc,
        .read = read,
        .context = context,
        .word_mask = arch->word_bytes == 8 ? UINT64_MAX : UINT32_MAX,
    };
    struct arch_caller found;
    enum runtime_eval_result result = runtime_rule_eval_inline(arch, rule, &evaluation, &found, cfa);
    if (result != RUNTIME_EVAL_OK)
        return result;
    caller->pc = found.pc;
    caller->valid = found.valid;
    caller->reg[arch->sp_reg] = found.sp;
    for (unsigned slot = 0; slot < arch->tracked_count; slot++)
        if (found.valid >> arch->tracked[slot] & 1)
            caller->reg[arch->tracked[slot]] = found.tracked[slot];
    return RUNTIME_EVAL_OK;
}
