// SPDX-License-Identifier: Apache-2.0
// A part of walk_inline.h: how a frame is left whose function goes on with another stack (QUT_REFUSED_STACK_SWITCH),
// where somebody knows the records of the runtime that it belongs to.
#ifndef QUT_RUNTIME_WALK_SWITCH_INLINE_H
#define QUT_RUNTIME_WALK_SWITCH_INLINE_H

// False: the walk ends, for the reason that it had, or a better one.
RUNTIME_WALK_OUTLINE bool runtime_leave_switch(const struct arch *arch, const struct runtime_walk_ops *ops,
                                               void *context, struct runtime_walk *walk)
{
    enum arch_pc_kind kind = ARCH_PC_RETURN;
    uint64_t pc, sp;
    enum runtime_switch how = ops->leave_switch(context, walk, &pc, &sp, &kind);
    if (how == RUNTIME_SWITCH_UNKNOWN)
        return false;
    walk->end.reason = QUT_END_NOT;
    walk->end.refusal = 0;
    if (how == RUNTIME_SWITCH_OUTERMOST)
        return runtime_walk_ends(arch, walk, QUT_END_OUTERMOST);
    pc = ops->strip(context, pc);
    // The other stack may lie anywhere; on the same one the caller lies further out.
    if (!runtime_enter_caller(arch, walk, pc, sp, sp > walk->regs.sp, false))
        return false;
    if (kind == ARCH_PC_EXACT) {
        walk->pc_kind = ARCH_PC_EXACT;
        walk->flags |= QUT_FRAME_INTERRUPTED;
    }
    walk->regs = (struct arch_caller){.pc = pc, .sp = sp, .valid = (uint64_t)1 << arch->sp_reg};
    return true;
}

#endif
