// SPDX-License-Identifier: Apache-2.0
// The one source of the walk, with walk_classify.h. Nearly every function here is inlined into its user: with `arch`
// and `ops` constant it becomes the local walker, else the generic one (walk.c).
//
//   classify   pc -> how to leave this frame: a rule, a signal trampoline, or an end
//   leave      rule, trampoline or guess + registers -> the caller's registers, or an end
#ifndef QUT_RUNTIME_WALK_STEP_H
#define QUT_RUNTIME_WALK_STEP_H

#include "libqut/runtime/rule_eval_inline.h"
#include "libqut/runtime/walk_classify.h"

// ---- leave

// A caller was found: is it one that can be? If so the walk is there, but for walk->regs.
QUT_WALK_INLINE bool qut_enter_caller(const struct qut_arch *arch, struct qut_walk *walk, uint64_t pc, uint64_t sp,
                                      bool sp_is_known, bool guessed)
{
    bool from_signal = walk->flags & QUT_FRAME_SIGNAL;
    if (from_signal || !sp_is_known || !qut_knows_sp(arch, walk)) {
        // The interrupted stack may be any other, and one without a known sp cannot be compared; but not for ever.
        if (walk->switches == QUT_SWITCHES_MAX)
            return qut_walk_ends(arch, walk, QUT_END_NO_PROGRESS);
        walk->switches++;
    } else {
        // Within a stack sp moves outward. Only an interrupted leaf can share its sp with its caller.
        bool leaf = walk->pc_kind == QUT_PC_EXACT && sp == walk->regs.sp;
        if (sp <= walk->regs.sp && !leaf)
            return qut_walk_ends(arch, walk, QUT_END_NO_PROGRESS);
    }
    // Nothing returns to 0: thread libraries mark the outermost frame so where unwind information does not. An
    // interrupted pc of 0 is a call through a null pointer.
    if (!from_signal && pc == 0)
        return qut_walk_ends(arch, walk, QUT_END_OUTERMOST);

    walk->pc_kind = from_signal ? QUT_PC_EXACT : QUT_PC_RETURN;
    walk->flags = (uint8_t)((from_signal ? QUT_FRAME_INTERRUPTED : 0) | (guessed ? QUT_FRAME_GUESSED : 0));
    walk->classified = false;
    walk->block_layout = NULL;
    walk->top = NULL;
    walk->index++;
    if (guessed && walk->end.guessed_frame == QUT_NO_GUESS)
        walk->end.guessed_frame = walk->index;
    return true;
}

QUT_WALK_INLINE bool qut_read_saved(const struct qut_arch *arch, const struct qut_walk_ops *ops, void *context,
                                    struct qut_walk *walk, unsigned offset_bytes, uint64_t *value)
{
    uint64_t address = (walk->trampoline_block + offset_bytes) & qut_word_mask(arch);
    if (ops->read(context, address, value))
        return true;
    walk->end.address = address;
    return qut_walk_ends(arch, walk, QUT_END_BAD_MEMORY);
}

QUT_WALK_OUTLINE bool qut_leave_trampoline(const struct qut_arch *arch, const struct qut_walk_ops *ops, void *context,
                                           struct qut_walk *walk)
{
    const struct qut_register_layout *layout = walk->trampoline->layout;
    uint64_t pc, sp;
    if (!qut_read_saved(arch, ops, context, walk, layout->pc_offset, &pc) ||
        !qut_read_saved(arch, ops, context, walk, layout->reg_offset[arch->sp_reg], &sp))
        return false;
    pc = ops->strip(context, pc);
    if (!qut_enter_caller(arch, walk, pc, sp, true, false))
        return false;
    walk->block_address = walk->trampoline_block;
    walk->block_layout = layout;
    walk->regs.pc = pc;
    walk->regs.sp = sp;
    walk->regs.valid = (uint64_t)1 << arch->sp_reg;
    for (unsigned slot = 0; slot < arch->tracked_count; slot++) {
        uint64_t address = (walk->block_address + layout->reg_offset[arch->tracked[slot]]) & qut_word_mask(arch);
        if (ops->read(context, address, &walk->regs.tracked[slot]))
            walk->regs.valid |= (uint64_t)1 << arch->tracked[slot];
    }
    return true;
}

// What evaluating a rule asks for, and which address could not be read, for the end's report.
struct qut_frame_access {
    const struct qut_arch *arch;
    const struct qut_walk_ops *ops;
    void *context;
    const struct qut_walk *walk;
    uint64_t failed_address;
};

QUT_WALK_INLINE bool qut_access_register(void *frame, unsigned reg, uint64_t *value)
{
    const struct qut_frame_access *access = frame;
    return qut_register(access->arch, access->ops, access->context, access->walk, reg, value);
}

QUT_WALK_INLINE bool qut_access_memory(void *context, uint64_t address, uint64_t *value)
{
    struct qut_frame_access *access = context;
    if (access->ops->read(access->context, address, value))
        return true;
    access->failed_address = address;
    return false;
}

QUT_WALK_OUTLINE bool qut_leave_by_rule(const struct qut_arch *arch, const struct qut_walk_ops *ops, void *context,
                                        struct qut_walk *walk)
{
    struct qut_frame_access access = {arch, ops, context, walk, 0};
    struct qut_evaluation evaluation = {
        .reg = qut_access_register,
        .frame = &access,
        .pc = walk->regs.pc,
        .read = qut_access_memory,
        .context = &access,
        .word_mask = qut_word_mask(arch),
    };
    if (!qut_keeps_dex_pc(arch, walk) || !qut_register(arch, ops, context, walk, walk->rule.dex_pc_reg, &walk->dex_pc))
        walk->dex_pc = 0;
    struct qut_caller caller;
    switch (qut_rule_eval_inline(arch, &walk->rule, &evaluation, &caller, NULL)) {
    case QUT_EVAL_OK: break;
    case QUT_EVAL_END: return qut_walk_ends(arch, walk, QUT_END_OUTERMOST);
    case QUT_EVAL_NO_RULE: return qut_walk_ends(arch, walk, QUT_END_NO_ROW);
    case QUT_EVAL_NO_REGISTER: return qut_walk_ends(arch, walk, QUT_END_NO_REGISTER);
    case QUT_EVAL_BAD_MEMORY:
        walk->end.address = access.failed_address;
        return qut_walk_ends(arch, walk, QUT_END_BAD_MEMORY);
    }
    caller.pc = ops->strip(context, caller.pc);
    if (!qut_enter_caller(arch, walk, caller.pc, caller.sp, caller.valid >> arch->sp_reg & 1, false))
        return false;
    walk->regs = caller;
    if (walk->dex_pc) {
        walk->flags = QUT_FRAME_DEX;
        walk->classified = true;
    }
    return true;
}

// From the bytecode to who called its interpreter: its registers are there.
QUT_WALK_INLINE bool qut_leave_dex(struct qut_walk *walk)
{
    walk->flags = 0;
    walk->classified = false;
    walk->index++;
    return true;
}

// ---- guess: the innermost frame only, and only where nothing is known about its pc

// A return address that can be believed: code with a rule lies there. *rule is overwritten.
QUT_WALK_INLINE bool qut_is_code_with_rule(const struct qut_arch *arch, const struct qut_walk_ops *ops, void *context,
                                           struct qut_rule *rule, uint64_t ra)
{
    struct qut_code code = {0};
    uint64_t lookup_pc = qut_lookup_pc(qut_plain_pc(arch, ra), QUT_PC_RETURN);
    ops->find(context, lookup_pc, &code);
    if (code.state != QUT_CODE_READY)
        return false;
    qut_table_rule(code.table, lookup_pc - code.load_bias, rule);
    return rule->kind == QUT_RULE_FRAME && !(rule->flags & QUT_RULE_SIGNAL);
}

// Everything but pc, sp and, where it was read, the frame pointer is what it was: nothing tells.
QUT_WALK_INLINE bool qut_enter_guessed(const struct qut_arch *arch, struct qut_walk *walk, uint64_t pc, uint64_t sp,
                                       const uint64_t *fp)
{
    sp &= qut_word_mask(arch);
    if (!qut_enter_caller(arch, walk, pc, sp, true, true))
        return false;
    uint64_t kept = (uint64_t)1 << arch->sp_reg;
    for (unsigned slot = 0; slot < arch->tracked_count; slot++)
        kept |= (uint64_t)1 << arch->tracked[slot];
    walk->regs.pc = pc;
    walk->regs.sp = sp;
    walk->regs.valid &= kept;
    if (fp) { // the other registers were saved at unknown places
        walk->regs.tracked[0] = *fp;
        walk->regs.valid = (uint64_t)1 << arch->sp_reg | (uint64_t)1 << arch->tracked[0];
    }
    return true;
}

QUT_WALK_OUTLINE bool qut_guess_caller(const struct qut_arch *arch, const struct qut_walk_ops *ops, void *context,
                                       struct qut_walk *walk)
{
    if (!qut_knows_sp(arch, walk))
        return false;
    uint64_t sp = walk->regs.sp, pc;
    if (arch->guess == QUT_GUESS_LINK_REGISTER) { // cfa = sp; ra = lr
        if (!qut_register(arch, ops, context, walk, arch->ra_reg, &pc))
            return false;
        pc = ops->strip(context, pc);
        return qut_is_code_with_rule(arch, ops, context, &walk->rule, pc) &&
               qut_enter_guessed(arch, walk, pc, sp, NULL);
    }
    // cfa = sp + word; ra = *sp: a function that has pushed nothing yet, or a call to nowhere
    if (ops->read(context, sp, &pc) && qut_is_code_with_rule(arch, ops, context, &walk->rule, pc))
        return qut_enter_guessed(arch, walk, pc, sp + arch->word_bytes, NULL);
    // cfa = fp + 2 words; ra = *(fp + word); fp = *fp
    uint64_t fp = walk->regs.tracked[0], outer_fp;
    if (!(walk->regs.valid >> arch->tracked[0] & 1) || fp < sp || !ops->read(context, fp, &outer_fp) ||
        !ops->read(context, fp + arch->word_bytes, &pc) || !qut_is_code_with_rule(arch, ops, context, &walk->rule, pc))
        return false;
    return qut_enter_guessed(arch, walk, pc, fp + 2u * arch->word_bytes, &outer_fp);
}

// ---- the step

// CANTUNWIND is what Arm's linkers say of code that was built without unwind tables.
QUT_WALK_INLINE bool qut_may_guess(const struct qut_walk *walk)
{
    uint32_t reason = walk->end.reason;
    bool nothing_is_known = reason == QUT_END_NO_ROW || reason == QUT_END_NO_MODULE || reason == QUT_END_NO_TABLE ||
                            (reason == QUT_END_REFUSED && walk->end.refusal == QUT_REFUSED_CANTUNWIND);
    return walk->pc_kind == QUT_PC_EXACT && nothing_is_known;
}

// Leaves a frame that was classified.
QUT_WALK_INLINE bool qut_leave(const struct qut_arch *arch, const struct qut_walk_ops *ops, void *context,
                               struct qut_walk *walk)
{
    if (walk->flags & QUT_FRAME_DEX)
        return qut_leave_dex(walk);
    if (walk->end.reason == QUT_END_NOT)
        return walk->trampoline ? qut_leave_trampoline(arch, ops, context, walk)
                                : qut_leave_by_rule(arch, ops, context, walk);
    if (!qut_may_guess(walk))
        return false;
    struct qut_end end = walk->end;
    walk->end.reason = QUT_END_NOT;
    walk->end.refusal = 0;
    if (qut_guess_caller(arch, ops, context, walk))
        return true;
    walk->end = end;
    return false;
}

// walk->regs is filled already; where the other registers are comes after.
QUT_WALK_INLINE void qut_begin(struct qut_walk *walk, enum qut_pc_kind kind)
{
    walk->pc_kind = (uint8_t)kind;
    walk->classified = false;
    walk->block_layout = NULL;
    walk->top = NULL;
    walk->switches = 0;
    walk->flags = kind == QUT_PC_EXACT ? QUT_FRAME_INTERRUPTED : 0;
    walk->index = 0;
    walk->end = (struct qut_end){.guessed_frame = QUT_NO_GUESS};
}

QUT_WALK_INLINE void qut_describe(const struct qut_arch *arch, const struct qut_walk *walk, struct qut_frame *frame)
{
    bool is_thumb = !(walk->flags & QUT_FRAME_DEX) && qut_plain_pc(arch, walk->regs.pc) != walk->regs.pc;
    *frame = (struct qut_frame){
        .pc = qut_walk_pc(arch, walk),
        .lookup_pc = qut_walk_lookup_pc(arch, walk),
        .sp = qut_knows_sp(arch, walk) ? walk->regs.sp : 0,
        .flags = walk->flags | (is_thumb ? QUT_FRAME_THUMB : 0),
    };
}

#endif
