// SPDX-License-Identifier: Apache-2.0
// A part of walk_inline.h: how a frame is left about whose pc nothing is known. A caller that is found so is marked
// (QUT_FRAME_GUESSED), and the walk goes on by rules as soon as one holds. Every such caller must lie behind a call, in
// code with rules, or in executable memory that frame pointers may lead through; its frame must lie further out.
#ifndef QUT_RUNTIME_WALK_GUESS_INLINE_H
#define QUT_RUNTIME_WALK_GUESS_INLINE_H

// A return address that can be believed: behind a call, in code with a rule or in code that frame pointers may lead
// through. *rule is overwritten.
RUNTIME_WALK_OUTLINE bool runtime_is_caller(const struct arch *arch, const struct runtime_walk_ops *ops, void *context,
                                            struct qut_rule *rule, uint64_t ra, enum runtime_callers which)
{
    struct runtime_code code = {0};
    ra = runtime_plain_pc(arch, ra);
    uint64_t lookup_pc = arch_lookup_pc(ra, ARCH_PC_RETURN);
    struct arch_interpreted interpreted;
    ops->find(context, lookup_pc, &code);
    rule->kind = QUT_RULE_HOLE;
    if (which != RUNTIME_CALLERS_ALL && code.state != RUNTIME_CODE_OF_MACHINE)
        return false;
    if (code.state == RUNTIME_CODE_READY)
        runtime_table_rule(code.table, lookup_pc - code.load_bias, rule);
    if (code.state == RUNTIME_CODE_OF_MACHINE &&
        ops->machine_rule(context, code.machine, ra, ARCH_PC_RETURN, rule, &interpreted) && code.has_entries)
        return true;
    bool has_rule = rule->kind == QUT_RULE_FRAME && !(rule->flags & QUT_RULE_SIGNAL);
    if (!has_rule && code.frame_pointers == RUNTIME_FRAME_POINTERS_NOT)
        return false;
    enum runtime_call_site site =
        ops->call_site ? ops->call_site(context, ra) : runtime_read_call_site(arch, ops->read_code, context, ra);
    // A core file need not have the code.
    return site == RUNTIME_CALL_SITE || (site == RUNTIME_CALL_SITE_UNREADABLE && has_rule);
}

// Everything but pc, sp and, where it was read, the frame pointer is what it was: nothing tells. False where that is
// no caller.
RUNTIME_WALK_INLINE bool runtime_enter_guessed(const struct arch *arch, const struct runtime_walk_ops *ops,
                                               void *context, struct runtime_walk *walk, uint64_t pc, uint64_t sp,
                                               const uint64_t *fp)
{
    sp &= runtime_word_mask(arch);
    walk->end.reason = QUT_END_NOT;
    pc = ops->strip(context, pc);
    if (!runtime_is_caller(arch, ops, context, &walk->rule, pc, RUNTIME_CALLERS_ALL) ||
        !runtime_enter_caller(arch, walk, pc, sp, true, true))
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

// ra = *(fp + ra_words); fp = *(fp + fp_words); cfa = fp + cfa_words. Where the cfa is not known, sp is what it is at
// least, and does not count as known.
RUNTIME_WALK_INLINE bool runtime_follow_frame_pointer(const struct arch *arch, const struct runtime_walk_ops *ops,
                                                      void *context, struct runtime_walk *walk)
{
    const struct arch_frame_record *record = &arch->frame_record;
    uint64_t fp = walk->regs.tracked[0], sp = walk->regs.sp, outer_fp, pc;
    if (!record->is_known || !(walk->regs.valid >> arch->tracked[0] & 1) || fp < sp ||
        fp - sp > RUNTIME_GUESSED_FRAME_BYTES_MAX || fp % arch->word_bytes != 0)
        return false;
    uint64_t at = fp + (uint64_t)(int64_t)(record->fp_words * arch->word_bytes);
    // Where this frame's sp is not known either, it is fp that moves outward.
    bool sp_is_known = runtime_knows_sp(arch, walk);
    uint8_t switches = walk->switches;
    if (!ops->read(context, at, &outer_fp) ||
        !ops->read(context, fp + (uint64_t)(int64_t)(record->ra_words * arch->word_bytes), &pc) ||
        !runtime_enter_guessed(arch, ops, context, walk, pc,
                               fp + (uint64_t)(int64_t)(record->cfa_words * arch->word_bytes), &outer_fp))
        return false;
    if (!sp_is_known)
        walk->switches = switches;
    if (!record->cfa_is_known)
        walk->regs.valid &= ~((uint64_t)1 << arch->sp_reg);
    return true;
}

// The innermost frame may have none of its own yet, or any more: cfa = sp + saved + word; ra = *(sp + saved).
RUNTIME_WALK_INLINE bool runtime_leave_unframed(const struct arch *arch, const struct runtime_walk_ops *ops,
                                                void *context, struct runtime_walk *walk, bool saved_fp)
{
    uint64_t sp = walk->regs.sp, saved = saved_fp ? arch->word_bytes : 0, fp, pc;
    if (arch->guess == ARCH_GUESS_LINK_REGISTER) // cfa = sp; ra = lr
        return runtime_register(arch, ops, context, walk, arch->ra_reg, &pc) &&
               runtime_enter_guessed(arch, ops, context, walk, pc, sp, NULL);
    return ops->read(context, sp, &fp) && ops->read(context, sp + saved, &pc) &&
           runtime_enter_guessed(arch, ops, context, walk, pc, sp + saved + arch->word_bytes, saved_fp ? &fp : NULL);
}

// By the instructions around an interrupted pc. NULL: they tell nothing.
RUNTIME_WALK_OUTLINE const struct arch_frame_edge *
runtime_find_edge(const struct arch *arch, const struct runtime_walk_ops *ops, void *context, uint64_t pc)
{
    uint8_t code[ARCH_EDGE_BYTES_BEFORE + ARCH_EDGE_BYTES_AT];
    size_t count = ops->read_code(context, pc - ARCH_EDGE_BYTES_BEFORE, code, sizeof code);
    return count > ARCH_EDGE_BYTES_BEFORE
               ? arch_frame_edge_at(arch, code + ARCH_EDGE_BYTES_BEFORE, ARCH_EDGE_BYTES_BEFORE,
                                    (unsigned)count - ARCH_EDGE_BYTES_BEFORE)
               : NULL;
}

// The same where looking takes a system call, of 10,000 to 30,000 cycles behind other work. pc was classified.
RUNTIME_WALK_INLINE const struct arch_frame_edge *
runtime_find_made_edge(const struct arch *arch, const struct runtime_walk_ops *ops, void *context, uint64_t pc)
{
    const struct arch_frame_edge *edge;
    if (ops->known_edge && ops->known_edge(pc, &edge))
        return edge;
    edge = runtime_find_edge(arch, ops, context, pc);
    if (ops->keep_edge)
        ops->keep_edge(pc, edge);
    return edge;
}

// Code of a virtual machine that it states no frame size of: stubs. Some keep a frame pointer, which then lies near;
// the others save a few registers at most, and the nearest return address to other code of the machine is their
// caller's: ra = *at; cfa = at + word. Where a size is stated and was not right, the frame may be gone.
RUNTIME_WALK_OUTLINE bool runtime_scan_for_caller(const struct arch *arch, const struct runtime_walk_ops *ops,
                                                  void *context, struct runtime_walk *walk, bool has_size)
{
    const struct arch_frame_edge *edge =
        walk->pc_kind == ARCH_PC_EXACT ? runtime_find_edge(arch, ops, context, walk->regs.pc) : NULL;
    if (edge)
        return runtime_leave_unframed(arch, ops, context, walk, edge->saved_words == 1);
    uint64_t word = arch->word_bytes, at = walk->regs.sp, ra;
    // C++ calls some of them itself, to flush caches or to ask the processor: with the return address on top.
    if (!has_size && walk->pc_kind == ARCH_PC_EXACT &&
        runtime_returns_to_machine(arch, ops, context, at, RUNTIME_CALLERS_ALL, &ra))
        return runtime_enter_guessed(arch, ops, context, walk, ra, at + word, NULL);
    bool is_near = walk->regs.tracked[0] - walk->regs.sp < RUNTIME_STUB_WORDS_MAX * word;
    if (!has_size && is_near &&
        runtime_returns_to_machine(arch, ops, context, walk->regs.tracked[0] + word, RUNTIME_CALLERS_OF_MACHINE, &ra) &&
        runtime_follow_frame_pointer(arch, ops, context, walk))
        return true;
    // The nearest. C1's check of subtypes has its arguments pushed by the method that calls it.
    for (unsigned i = 0; i < (has_size ? 1 : RUNTIME_SCANNED_WORDS_MAX); i++, at += word)
        if (runtime_returns_to_machine(arch, ops, context, at, RUNTIME_CALLERS_OF_MACHINE, &ra) ||
            runtime_returns_to_machine(arch, ops, context, at, RUNTIME_CALLERS_WITH_ARGUMENTS, &ra))
            return runtime_enter_guessed(arch, ops, context, walk, ra, at + word, NULL);
    return false;
}

// In code of an image that has no rule, assembly mostly, what lies on top of the stack is the likelier; in code that
// was made at run time the frame pointer.
RUNTIME_WALK_OUTLINE bool runtime_guess_caller(const struct arch *arch, const struct runtime_walk_ops *ops,
                                               void *context, struct runtime_walk *walk)
{
    struct runtime_code code = {0};
    uint64_t pc = runtime_plain_pc(arch, walk->regs.pc);
    ops->find(context, arch_lookup_pc(pc, walk->pc_kind), &code);
    if (code.state == RUNTIME_CODE_OF_MACHINE)
        return !code.is_called_by_all && runtime_knows_sp(arch, walk) &&
               runtime_scan_for_caller(
                   arch, ops, context, walk,
                   ops->machine_rule(context, code.machine, pc, walk->pc_kind, &walk->rule, &walk->interpreted));
    if (walk->pc_kind == ARCH_PC_RETURN || !runtime_knows_sp(arch, walk))
        return code.frame_pointers && runtime_follow_frame_pointer(arch, ops, context, walk);
    bool is_made = code.frame_pointers == RUNTIME_FRAME_POINTERS_OF_MADE_CODE;
    const struct arch_frame_edge *edge = NULL;
    if (code.frame_pointers && arch->frame_edge_count)
        edge = is_made ? runtime_find_made_edge(arch, ops, context, pc) : runtime_find_edge(arch, ops, context, pc);
    if (edge)
        return runtime_leave_unframed(arch, ops, context, walk, edge->saved_words == 1);
    bool may_follow = code.frame_pointers != RUNTIME_FRAME_POINTERS_NOT || arch->guess == ARCH_GUESS_STACK_TOP;
    return (is_made && runtime_follow_frame_pointer(arch, ops, context, walk)) ||
           runtime_leave_unframed(arch, ops, context, walk, false) ||
           (!is_made && may_follow && runtime_follow_frame_pointer(arch, ops, context, walk));
}

#endif
