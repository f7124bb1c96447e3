// SPDX-License-Identifier: Apache-2.0
// The one source of the walk. Nearly every function here is inlined into its user: with `arch` and `ops` constant it
// becomes the local walker, else the generic one (walk.c).
//
//   classify   pc → how to leave this frame: a rule, a signal trampoline, or an end
//   leave      rule, trampoline or guess + registers → the caller's registers, or an end
#ifndef QUT_RUNTIME_WALK_STEP_H
#define QUT_RUNTIME_WALK_STEP_H

#include <string.h>

#include "libqut/runtime/rule_eval_inline.h"
#include "libqut/runtime/walk.h"

#define QUT_WALK_INLINE static inline __attribute__((always_inline))
// Out of line: the stack these need is needed in turn, never together.
#define QUT_WALK_OUTLINE static __attribute__((noinline, unused))

enum {
    QUT_SWITCHES_MAX = 64,    // a corrupt stack could lead from signal frame to signal frame for ever
    QUT_ENTRY_BYTES_MAX = 52, // a program's _start, which has no caller: the longest is aarch64's and arm's in glibc
    QUT_VSYSCALL_BYTES = 4096,
};

QUT_WALK_INLINE uint64_t qut_word_mask(const struct qut_arch *arch)
{
    return arch->word_bytes == 8 ? UINT64_MAX : UINT32_MAX;
}

// A code address as it is compared and looked up: without the Thumb bit.
QUT_WALK_INLINE uint64_t qut_plain_pc(const struct qut_arch *arch, uint64_t pc)
{
    return arch->has_thumb ? pc & ~(uint64_t)1 : pc;
}

QUT_WALK_INLINE bool qut_walk_ends(const struct qut_arch *arch, struct qut_walk *walk, enum qut_end_reason reason)
{
    walk->end.reason = reason;
    walk->end.pc = qut_plain_pc(arch, walk->regs.pc);
    return false;
}

QUT_WALK_INLINE bool qut_knows_sp(const struct qut_arch *arch, const struct qut_walk *walk)
{
    return walk->regs.valid >> arch->sp_reg & 1;
}

// Of the current frame, by DWARF number.
QUT_WALK_INLINE bool qut_register(const struct qut_arch *arch, const struct qut_walk_ops *ops, void *context,
                                  const struct qut_walk *walk, unsigned reg, uint64_t *value)
{
    if (reg >= QUT_REGISTERS_MAX)
        return false;
    int slot = qut_arch_slot(arch, reg);
    if (reg == arch->sp_reg || slot >= 0) {
        *value = slot >= 0 ? walk->regs.tracked[slot] : walk->regs.sp;
        return walk->regs.valid >> reg & 1;
    }
    if (walk->block_layout)
        return walk->block_layout->reg_offset[reg] != QUT_NOT_KEPT &&
               ops->read(context, (walk->block_address + walk->block_layout->reg_offset[reg]) & qut_word_mask(arch),
                         value);
    if (!walk->top || !(walk->top->valid >> reg & 1))
        return false;
    *value = walk->top->reg[reg];
    return true;
}

// ---- classify

// Whether the thread returns to, or stands in, a signal trampoline. Its bytes decide: unwind information is missing for
// it in musl and several vdsos, and as nobody calls it, pc - 1 can belong to another function.
QUT_WALK_OUTLINE bool qut_find_trampoline(const struct qut_arch *arch, const struct qut_walk_ops *ops, void *context,
                                          struct qut_walk *walk)
{
    if (!qut_knows_sp(arch, walk))
        return false;
    uint64_t pc = qut_plain_pc(arch, walk->regs.pc), sp = walk->regs.sp;
    // The code from the furthest entry before pc on, read once.
    enum { BEFORE_BYTES = 16, AFTER_BYTES = sizeof arch->trampolines->code };
    uint8_t code[BEFORE_BYTES + AFTER_BYTES];
    unsigned before_bytes = walk->pc_kind == QUT_PC_EXACT ? BEFORE_BYTES : 0;
    size_t code_bytes = ops->read_code(context, pc - before_bytes, code, before_bytes + AFTER_BYTES);
    if (code_bytes <= before_bytes && before_bytes) { // pc stands near the beginning of what is mapped
        before_bytes = 0;
        code_bytes = ops->read_code(context, pc, code, AFTER_BYTES);
    }
    for (unsigned i = 0; i < arch->trampoline_count; i++) {
        const struct qut_trampoline *t = &arch->trampolines[i];
        unsigned entries = walk->pc_kind == QUT_PC_EXACT ? t->entry_count : 1;
        for (unsigned e = 0; e < entries; e++) {
            unsigned offset = t->entries[e].code_offset;
            if (offset > before_bytes || before_bytes - offset + t->code_bytes > code_bytes ||
                memcmp(code + before_bytes - offset, t->code, t->code_bytes) != 0)
                continue;
            walk->trampoline = t;
            walk->trampoline_block = (sp + (uint64_t)(int64_t)t->entries[e].registers_offset) & qut_word_mask(arch);
            walk->flags |= QUT_FRAME_SIGNAL;
            return true;
        }
    }
    return false;
}

// cfa = sp + cfa_offset; everything else unchanged.
QUT_WALK_INLINE void qut_set_leaf_rule(const struct qut_arch *arch, struct qut_rule *rule, int32_t cfa_offset_bytes)
{
    memset(rule, 0, sizeof *rule);
    rule->kind = QUT_RULE_FRAME;
    rule->dex_pc_reg = QUT_NO_REGISTER;
    rule->cfa.reg = arch->sp_reg;
    rule->cfa.offset_bytes = cfa_offset_bytes;
}

// Function-level tables are true where calls are made. An interrupted pc may stand elsewhere: at the first instruction
// cfa = sp and ra is in its register; in between, the rule is no more than a guess.
QUT_WALK_OUTLINE void qut_judge_body_only(const struct qut_arch *arch, const struct qut_code *code,
                                          struct qut_walk *walk)
{
    uint64_t vaddr = qut_plain_pc(arch, walk->regs.pc) - code->load_bias;
    if (vaddr == qut_table_row_start(code->table, vaddr)) {
        // Where frame programs describe what is before, this row may be the rest of a function that they began.
        qut_table_rule(code->table, vaddr - 1, &walk->rule);
        if (walk->rule.kind != QUT_RULE_FRAME || (walk->rule.flags & QUT_RULE_BODY_ONLY)) {
            qut_set_leaf_rule(arch, &walk->rule, 0);
            return;
        }
        qut_table_rule(code->table, vaddr, &walk->rule);
    }
    walk->flags |= QUT_FRAME_GUESSED;
    if (walk->end.guessed_frame == QUT_NO_GUESS)
        walk->end.guessed_frame = walk->index;
}

// *row_reaches_pc: the row found for a return address also holds at the address itself, which then begins no row.
QUT_WALK_INLINE enum qut_end_reason qut_find_rule(const struct qut_arch *arch, const struct qut_walk_ops *ops,
                                                  void *context, struct qut_walk *walk, struct qut_code *code,
                                                  bool *row_reaches_pc)
{
    uint64_t pc = qut_plain_pc(arch, walk->regs.pc);
    uint64_t lookup_pc = qut_lookup_pc(pc, walk->pc_kind);
    *row_reaches_pc = false;
    walk->rule.kind = QUT_RULE_HOLE;
    ops->find(context, lookup_pc, code);
    switch (code->state) {
    case QUT_CODE_NO_MODULE: return QUT_END_NO_MODULE;
    case QUT_CODE_PENDING: return QUT_END_TABLE_PENDING;
    case QUT_CODE_NO_TABLE: return QUT_END_NO_TABLE;
    case QUT_CODE_READY: break;
    }
    uint64_t vaddr = lookup_pc - code->load_bias, row_end;
    if (!qut_table_next_row(code->table, &vaddr, &row_end, &walk->rule))
        return QUT_END_NO_ROW;
    *row_reaches_pc = row_end > pc - code->load_bias;
    if (walk->rule.kind == QUT_RULE_REFUSED)
        return QUT_END_REFUSED;
    return walk->rule.kind == QUT_RULE_FRAME ? QUT_END_NOT : QUT_END_NO_ROW;
}

// Fills what says how to leave this frame. False: the walk ends here. *cacheable: the rule holds for every
// walk that looks up the same pc.
QUT_WALK_INLINE bool qut_classify(const struct qut_arch *arch, const struct qut_walk_ops *ops, void *context,
                                  struct qut_walk *walk, bool *cacheable)
{
    struct qut_code code = {0};
    bool row_reaches_pc;
    *cacheable = false;
    walk->classified = true;
    walk->trampoline = NULL;
    enum qut_end_reason found = qut_find_rule(arch, ops, context, walk, &code, &row_reaches_pc);

    if (found == QUT_END_NOT) {
        // The trampoline's own rule gives the tracked registers; the signal context has all of them, and what was
        // interrupted may need any.
        bool is_signal = walk->rule.flags & QUT_RULE_SIGNAL;
        bool may_be_trampoline = is_signal || (walk->pc_kind == QUT_PC_RETURN && !row_reaches_pc);
        if (may_be_trampoline && qut_find_trampoline(arch, ops, context, walk))
            return true;
        if (is_signal) {
            walk->flags |= QUT_FRAME_SIGNAL;
            return true;
        }
        if (walk->rule.flags & QUT_RULE_BODY_ONLY) {
            if (walk->pc_kind == QUT_PC_EXACT)
                qut_judge_body_only(arch, &code, walk);
            return true;
        }
        // Remembered by lookup pc alone: a row that ends right behind it could be asked for as either kind of pc.
        *cacheable = walk->pc_kind == QUT_PC_RETURN || row_reaches_pc;
        return true;
    }

    uint64_t pc = qut_plain_pc(arch, walk->regs.pc);
    if (arch->vsyscall && pc - arch->vsyscall < QUT_VSYSCALL_BYTES) {
        qut_set_leaf_rule(arch, &walk->rule, arch->word_bytes);
        walk->rule.ra = (struct qut_reg_rule){.how = QUT_REG_AT_CFA, .offset_bytes = -arch->word_bytes};
        return true;
    }
    if (qut_find_trampoline(arch, ops, context, walk))
        return true;
    // A hole that begins behind the entry point is another function: crt1.o's _start was described and ends before it.
    if (code.entry && pc - code.entry < QUT_ENTRY_BYTES_MAX &&
        (found != QUT_END_NO_ROW ||
         qut_table_row_start(code.table, pc - code.load_bias) <= code.entry - code.load_bias))
        return qut_walk_ends(arch, walk, QUT_END_OUTERMOST);
    if (found == QUT_END_REFUSED)
        walk->end.refusal = walk->rule.reason;
    return qut_walk_ends(arch, walk, found);
}

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
    uint64_t pc = qut_plain_pc(arch, walk->regs.pc);
    bool exact = walk->pc_kind == QUT_PC_EXACT || (walk->flags & QUT_FRAME_SIGNAL);
    *frame = (struct qut_frame){
        .pc = pc,
        .lookup_pc = qut_lookup_pc(pc, exact ? QUT_PC_EXACT : QUT_PC_RETURN),
        .sp = qut_knows_sp(arch, walk) ? walk->regs.sp : 0,
        .flags = walk->flags | (pc != walk->regs.pc ? QUT_FRAME_THUMB : 0),
    };
}

#endif
