// SPDX-License-Identifier: Apache-2.0
// First half of the walk's source: pc -> how to leave this frame. A rule, a signal trampoline, or an end.
#ifndef QUT_RUNTIME_WALK_CLASSIFY_H
#define QUT_RUNTIME_WALK_CLASSIFY_H

#include <string.h>

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

// Of the current frame, as it is given out.
QUT_WALK_INLINE uint64_t qut_walk_pc(const struct qut_arch *arch, const struct qut_walk *walk)
{
    return walk->flags & QUT_FRAME_DEX ? walk->dex_pc : qut_plain_pc(arch, walk->regs.pc);
}

// ... and the address to look it up with: no machine code returns to bytecode.
QUT_WALK_INLINE uint64_t qut_walk_lookup_pc(const struct qut_arch *arch, const struct qut_walk *walk)
{
    bool is_exact = walk->pc_kind == QUT_PC_EXACT || (walk->flags & (QUT_FRAME_SIGNAL | QUT_FRAME_DEX));
    return qut_lookup_pc(qut_walk_pc(arch, walk), is_exact ? QUT_PC_EXACT : QUT_PC_RETURN);
}

QUT_WALK_INLINE bool qut_walk_ends(const struct qut_arch *arch, struct qut_walk *walk, enum qut_end_reason reason)
{
    walk->end.reason = reason;
    walk->end.pc = qut_walk_pc(arch, walk);
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
    if (reg >= QUT_REGISTERS_MAX) {
        if (reg != QUT_VECTOR_BYTES || !ops->vector_bytes)
            return false;
        *value = ops->vector_bytes(context);
        return *value != 0;
    }
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

// Whether the thread returns to, or stands in, code that nobody calls. Its bytes decide: unwind information is missing
// for signal trampolines in musl and several vdsos, and pc - 1 can belong to another function. False too, and an end,
// where a stack begins.
QUT_WALK_OUTLINE bool qut_find_trampoline(const struct qut_arch *arch, const struct qut_walk_ops *ops, void *context,
                                          struct qut_walk *walk)
{
    if (!qut_knows_sp(arch, walk))
        return false;
    uint64_t pc = qut_plain_pc(arch, walk->regs.pc), sp = walk->regs.sp;
    // The code from the furthest entry before pc on, read once.
    enum { BEFORE_BYTES = QUT_TRAMPOLINE_OFFSET_MAX, AFTER_BYTES = sizeof arch->trampolines->code };
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
            if (!t->layout)
                return qut_walk_ends(arch, walk, QUT_END_OUTERMOST);
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
// cfa = sp and ra is in its register, or the call has just pushed it; in between, the rule is no more than a guess.
QUT_WALK_OUTLINE void qut_judge_body_only(const struct qut_arch *arch, const struct qut_code *code,
                                          struct qut_walk *walk)
{
    uint64_t vaddr = qut_plain_pc(arch, walk->regs.pc) - code->load_bias;
    if (vaddr == qut_table_row_start(code->table, vaddr)) {
        // Where frame programs describe what is before, this row may be the rest of a function that they began.
        qut_table_rule(code->table, vaddr - 1, &walk->rule);
        if (walk->rule.kind != QUT_RULE_FRAME || (walk->rule.flags & QUT_RULE_BODY_ONLY)) {
            qut_set_leaf_rule(arch, &walk->rule, arch->ra_in_register ? 0 : arch->word_bytes);
            if (!arch->ra_in_register)
                walk->rule.ra = (struct qut_reg_rule){.how = QUT_REG_AT_CFA, .offset_bytes = -arch->word_bytes};
            return;
        }
        qut_table_rule(code->table, vaddr, &walk->rule);
    }
    walk->flags |= QUT_FRAME_GUESSED;
    if (walk->end.guessed_frame == QUT_NO_GUESS)
        walk->end.guessed_frame = walk->index;
}

// An interpreter's frame whose register is its own. Where it is the caller's, not saved yet or restored already, the
// mark stands there all the same: in Android 11's and 12's libart up to the end of the function.
QUT_WALK_INLINE bool qut_keeps_dex_pc(const struct qut_arch *arch, const struct qut_walk *walk)
{
    if (!(walk->flags & QUT_FRAME_INTERPRETER))
        return false;
    int slot = qut_arch_slot(arch, walk->rule.dex_pc_reg);
    return slot >= 0 && walk->rule.tracked[slot].how != QUT_REG_SAME;
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
    walk->flags |= code->frame_flags;
    switch (code->state) {
    case QUT_CODE_NO_MODULE: return QUT_END_NO_MODULE;
    case QUT_CODE_PENDING: return QUT_END_TABLE_PENDING;
    case QUT_CODE_NO_TABLE: return QUT_END_NO_TABLE;
    case QUT_CODE_READY: break;
    }
    if (code->table->header->flags & QUT_TABLE_MANAGED)
        walk->flags |= QUT_FRAME_MANAGED;
    uint64_t vaddr = lookup_pc - code->load_bias, row_end;
    if (!qut_table_next_row(code->table, &vaddr, &row_end, &walk->rule))
        return QUT_END_NO_ROW;
    *row_reaches_pc = row_end > pc - code->load_bias;
    if (walk->rule.kind == QUT_RULE_REFUSED)
        return QUT_END_REFUSED;
    return walk->rule.kind == QUT_RULE_FRAME ? QUT_END_NOT : QUT_END_NO_ROW;
}

// Fills what says how to leave this frame. False: the walk ends here.
QUT_WALK_INLINE bool qut_classify(const struct qut_arch *arch, const struct qut_walk_ops *ops, void *context,
                                  struct qut_walk *walk)
{
    struct qut_code code = {0};
    bool row_reaches_pc;
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
        if (walk->end.reason != QUT_END_NOT)
            return false;
        if (is_signal) {
            walk->flags |= QUT_FRAME_SIGNAL;
            return true;
        }
        if (walk->rule.flags & QUT_RULE_BODY_ONLY) {
            if (walk->pc_kind == QUT_PC_EXACT)
                qut_judge_body_only(arch, &code, walk);
        }
        if (walk->rule.dex_pc_reg != QUT_NO_REGISTER)
            walk->flags |= QUT_FRAME_INTERPRETER;
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
    if (walk->end.reason != QUT_END_NOT)
        return false;
    // A hole that begins behind the entry point is another function: crt1.o's _start was described and ends before it.
    uint64_t entry = qut_plain_pc(arch, code.entry);
    if (entry && pc - entry < QUT_ENTRY_BYTES_MAX &&
        (found != QUT_END_NO_ROW || qut_table_row_start(code.table, pc - code.load_bias) <= entry - code.load_bias))
        return qut_walk_ends(arch, walk, QUT_END_OUTERMOST);
    if (found == QUT_END_REFUSED)
        walk->end.refusal = walk->rule.reason;
    return qut_walk_ends(arch, walk, found);
}

#endif
