// SPDX-License-Identifier: Apache-2.0
#include "libqut/runtime/walk.h"

#include "libqut/runtime/walk_step.h"

void qut_walk_begin(const struct qut_arch *arch, struct qut_walk *walk, const struct qut_frame_regs *regs,
                    enum qut_pc_kind kind)
{
    walk->regs.pc = regs->pc;
    walk->regs.sp = regs->reg[arch->sp_reg];
    walk->regs.valid = regs->valid;
    for (unsigned slot = 0; slot < arch->tracked_count; slot++)
        walk->regs.tracked[slot] = regs->reg[arch->tracked[slot]];
    qut_begin(walk, kind);
    walk->top = regs;
}

bool qut_walk_register(const struct qut_arch *arch, const struct qut_walk_ops *ops, void *context,
                       const struct qut_walk *walk, unsigned reg, uint64_t *value)
{
    return qut_register(arch, ops, context, walk, reg, value);
}

void qut_walk_frame(const struct qut_arch *arch, const struct qut_walk_ops *ops, void *context, struct qut_walk *walk,
                    struct qut_frame *frame)
{
    if (!walk->classified)
        qut_classify(arch, ops, context, walk);
    qut_describe(arch, walk, frame);
}

bool qut_walk_step(const struct qut_arch *arch, const struct qut_walk_ops *ops, void *context, struct qut_walk *walk)
{
    if (!walk->classified)
        qut_classify(arch, ops, context, walk);
    return qut_leave(arch, ops, context, walk);
}
