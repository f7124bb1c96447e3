// SPDX-License-Identifier: Apache-2.0
// A part of walk_inline.h: return addresses that were exchanged. Who traces calls puts the address of code of its own
// in place of a function's return address, and keeps the true one in a shadow of the stack. That code's rule says where
// (QUT_REG_AT_SHADOW). What returns to it stands for no frame: it was never called. Leaving it puts the true address in
// its place, and nothing else changes. Where it was interrupted it is a frame like any other.
#ifndef QUT_RUNTIME_WALK_EXCHANGED_INLINE_H
#define QUT_RUNTIME_WALK_EXCHANGED_INLINE_H

// Of what was classified: whether it is no frame. Who walks leaves it before it is given out; the frame that it leads
// to must be one, since it may have the same sp: a shadow that names the code it belongs to would lead round in
// circles.
RUNTIME_WALK_INLINE bool runtime_is_exchanged(const struct runtime_walk *walk)
{
    return walk->rule.ra.how == QUT_REG_AT_SHADOW && walk->pc_kind == ARCH_PC_RETURN && !walk->trampoline &&
           walk->end.reason == QUT_END_NOT && !(walk->flags & QUT_FRAME_DEX) && walk->rule.kind == QUT_RULE_FRAME;
}

// The walk is at an exchanged return address: the frame it leads to counts as the one that the walk is at.
RUNTIME_WALK_INLINE void runtime_pass_exchanged(struct runtime_walk *walk)
{
    walk->index--;
    walk->pc_kind = ARCH_PC_EXACT; // a leaf's caller may have the same sp
}

#endif
