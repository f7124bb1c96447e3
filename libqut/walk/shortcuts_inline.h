// SPDX-License-Identifier: Apache-2.0
// A part of slow_walk.c: what spares the slow way some of its steps, and when it has to begin anew.
#ifndef QUT_WALK_SHORTCUTS_INLINE_H
#define QUT_WALK_SHORTCUTS_INLINE_H

static inline bool has_trail(const struct runtime_thread *thread)
{
    return thread->trail && thread->trail->frame_count;
}

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

// From here on the thread's trail leads to the root: all of the frames are given out.
__attribute__((noinline)) static bool pass_trail(struct backtrace *b)
{
    const struct runtime_trail_state *state;
    if (!b->local.has_seen_steps || b->was_exchanged || !has_trail(b->local.thread) ||
        !(state = walk_trail_find(b->local.thread->trail, &b->walk, b->local.direct, b->max - b->count,
                                  walk_local_proof_holds, &b->local)))
        return false;
    const struct runtime_trail *trail = b->local.thread->trail;
    const size_t first = b->count - 1, place = (size_t)(state - trail->states);
    b->followed_count = (uint8_t)walk_trail_follow(trail, state, &b->walk, b->pcs + b->count);
    b->count += b->followed_count;
    for (size_t i = 0; b->notes && i <= b->followed_count; i++) {
        note(b, first + i, trail->flags[place + i]);
        if (b->notes->sps)
            b->notes->sps[first + i] = trail->base + trail->sp_bytes[place + i];
    }
    if (b->fast)
        b->fast->thread->memo.contiguous = false;
    return true;
}

// What is the thread's serves the walk; or the walk is one that makes its trail.
static void use_thread(struct backtrace *b)
{
    walk_local_use_thread(&b->local);
    if (!b->local.has_seen_steps || b->local.thread->begin != RUNTIME_BEGIN_TRAIL)
        return;
    b->local.is_recorded = true;
    b->local.thread->seen->pending = NULL;
    walk_trail_record(b->local.thread->trail);
}

static void record_frame(struct backtrace *b)
{
    if (b->local.is_spoiled)
        walk_trail_spoil(b->local.thread->trail);
    b->local.is_spoiled = false;
    walk_trail_at(b->local.thread->trail, &b->walk);
}

static void record_step(struct backtrace *b, bool moved, unsigned flags)
{
    if (b->local.is_spoiled)
        walk_trail_spoil(b->local.thread->trail);
    (moved ? walk_trail_left : walk_trail_ended)(b->local.thread->trail, &b->walk, b->pcs[b->count - 1], flags);
}

// Behind a walk of the thread's. One that was recorded says no more than what it gave.
__attribute__((noinline)) static void choose_next_begin(struct backtrace *b, enum qut_end_reason reason)
{
    struct runtime_thread *thread = b->local.thread;
    struct runtime_trail *trail = thread->trail;
    thread->begin = RUNTIME_BEGIN_FAST;
    if (!b->local.has_seen_steps)
        return;
    if (b->followed_count && trail->needs_registers)
        thread->begin = RUNTIME_BEGIN_SLOWLY;
    if (!b->local.is_recorded && reason == QUT_END_OUTERMOST &&
        walk_trail_judge(trail, b->left_count, b->followed_count))
        thread->begin = RUNTIME_BEGIN_TRAIL;
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
