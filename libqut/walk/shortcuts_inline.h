// SPDX-License-Identifier: Apache-2.0
// A part of backtrace.c: what spares the slow way some of its steps, and when it has to begin anew.
#ifndef QUT_WALK_SHORTCUTS_INLINE_H
#define QUT_WALK_SHORTCUTS_INLINE_H

// A bytecode's frame is missing where its register is, though nothing that follows need be: that register is looked for
// from the walk's beginning.
static bool forgot_dex_pc(const struct backtrace *b)
{
    const struct runtime_walk *walk = &b->walk;
    return b->forgot && walk->end.reason == QUT_END_NOT && runtime_keeps_dex_pc(&arch_native_arch, walk) &&
           !(walk->regs.valid >> walk->rule.dex_pc_reg & 1);
}

// Gives out the callers of the frame the walk is at, as far as they are frames of made code as it is itself.
__attribute__((noinline)) static bool pass_made_frames(struct backtrace *b)
{
    uintptr_t *sps = b->notes && b->notes->sps ? b->notes->sps + b->count : NULL;
    size_t passed = walk_made_frames(&b->local, &b->walk, b->pcs + b->count, sps, b->max - b->count);
    b->slow_count += (uint32_t)passed;
    for (size_t i = 0; i < passed; i++)
        note(b, b->count++ - 1, QUT_FRAME_GUESSED);
    return passed != 0;
}

// As the thread has left that frame before. Not in a walk with all registers: such a step knows three.
__attribute__((noinline)) static bool pass_seen_step(struct backtrace *b)
{
    unsigned flags;
    if (!b->local.has_seen_steps || !b->fast || b->was_exchanged ||
        !walk_seen_follow(b->local.thread->seen, &b->walk, b->local.direct, &flags))
        return false;
    b->forgot = true; // what else a rule may have brought
    note(b, b->count - 1, flags);
    return true;
}

// By a rule that the thread has come to before.
__attribute__((noinline)) static enum walk_rule_told pass_known_rule(struct backtrace *b)
{
    unsigned flags;
    b->was_known = false;
    if (b->was_exchanged)
        return WALK_RULE_NONE;
    enum walk_rule_told told =
        walk_rules_follow(b->local.thread->rules, &b->walk, b->local.direct, walk_local_rule_holds, &b->local, &flags);
    b->was_known = told == WALK_RULE_LEFT;
    if (b->was_known)
        note(b, b->count - 1, flags);
    return told;
}

// Such frames follow each other: to the fast ways and back takes longer than one of them.
static inline bool is_among_known(const struct backtrace *b)
{
    return b->was_known && walk_rules_are_for(b->local.thread->rules, &b->walk);
}

#endif
