// SPDX-License-Identifier: Apache-2.0
// The one source of the walk, from a frame to its caller. Nearly every function here is inlined into its user: with
// `arch` and `ops` constant it becomes the local walker (libqut/walk), else the generic one (walk.c).
//
// Words, as they are used here:
//
//   frame        one function's part of the stack: of a call that has not returned
//   pc           where the frame's code stands: the instruction that was interrupted, or the one behind the call
//   lookup pc    the address whose rule counts: pc, or pc - 1 behind a call, which may be the function's last
//   sp, fp, lr   stack pointer, frame pointer, link register (aarch64, arm, riscv64: a call leaves ra there)
//   cfa          canonical frame address: sp as it was before the call. Rules count from it
//   ra           the address that the frame returns to: its caller's pc
//   rule         how a frame at some pc is left: cfa = sp + k; ra = *(cfa - 8); fp = *(cfa - 16)
//   row, hole    addresses with one rule; addresses that nothing describes
//   table        rows and rules of one file (formats/qut_table.md); module: that file, as it is loaded
//   trampoline   code that signal handlers return to, or that threads begin in: known by its bytes
//   tracked      registers that rules of other frames can need; the others are known in interrupted frames only
//   guess        what is tried where nothing is known, and is marked as such: frame pointers, and for the innermost
//                frame what lies on top of the stack or in the link register
//
// A step, from top to bottom of this file:
//
//   begin      the registers of a frame
//   classify   pc -> how to leave this frame: a rule, a signal trampoline, or an end
//   leave      rule, trampoline or guess + registers -> the caller's registers, or an end
#ifndef QUT_RUNTIME_WALK_INLINE_H
#define QUT_RUNTIME_WALK_INLINE_H

#include <string.h>

#include "libqut/runtime/rule_eval_inline.h"
#include "libqut/runtime/walk.h"

#define RUNTIME_WALK_INLINE static inline __attribute__((always_inline))
// Out of line: the stack these need is needed in turn, never together.
#define RUNTIME_WALK_OUTLINE static __attribute__((noinline, unused))

enum {
    RUNTIME_SWITCHES_MAX = 64, // a corrupt stack could lead from signal frame to signal frame for ever
    RUNTIME_ENTRY_BYTES_MAX =
        52, // a program's _start, which has no caller: the longest is aarch64's and arm's in glibc
    RUNTIME_VSYSCALL_BYTES = 4096,
    RUNTIME_GUESSED_FRAME_BYTES_MAX = 1 << 20, // further out no frame pointer is believed
    RUNTIME_STUB_WORDS_MAX = 64,               // of a virtual machine's stub that keeps a frame pointer
    RUNTIME_SCANNED_WORDS_MAX = 16,            // ... of one that keeps none
    RUNTIME_PUSHED_WORDS_MAX = 4,              // that a method's body has on its stack beyond its frame
    RUNTIME_PUSHED_ARGUMENTS = 2,              // ... while it calls a stub
};

// ---- a frame, asked

RUNTIME_WALK_INLINE uint64_t runtime_word_mask(const struct arch *arch)
{
    return arch->word_bytes == 8 ? UINT64_MAX : UINT32_MAX;
}

// A code address as it is compared and looked up: without the Thumb bit.
RUNTIME_WALK_INLINE uint64_t runtime_plain_pc(const struct arch *arch, uint64_t pc)
{
    return arch->has_thumb ? pc & ~(uint64_t)1 : pc;
}

// Of the current frame, as it is given out.
RUNTIME_WALK_INLINE uint64_t runtime_walk_pc(const struct arch *arch, const struct runtime_walk *walk)
{
    if (walk->flags & QUT_FRAME_DEX)
        return arch_interpreted_method(walk->dex_pc);
    return runtime_plain_pc(arch, walk->regs.pc);
}

// ... and the address to look it up with: no machine code returns to bytecode.
RUNTIME_WALK_INLINE uint64_t runtime_walk_lookup_pc(const struct arch *arch, const struct runtime_walk *walk)
{
    if (walk->flags & QUT_FRAME_DEX)
        return walk->dex_pc;
    bool is_exact = walk->pc_kind == ARCH_PC_EXACT || (walk->flags & QUT_FRAME_SIGNAL);
    return arch_lookup_pc(runtime_walk_pc(arch, walk), is_exact ? ARCH_PC_EXACT : ARCH_PC_RETURN);
}

RUNTIME_WALK_INLINE bool runtime_walk_ends(const struct arch *arch, struct runtime_walk *walk,
                                           enum qut_end_reason reason)
{
    walk->end.reason = reason;
    walk->end.pc = runtime_walk_pc(arch, walk);
    return false;
}

RUNTIME_WALK_INLINE bool runtime_knows_sp(const struct arch *arch, const struct runtime_walk *walk)
{
    return walk->regs.valid >> arch->sp_reg & 1;
}

// Of the current frame, by DWARF number.
RUNTIME_WALK_INLINE bool runtime_register(const struct arch *arch, const struct runtime_walk_ops *ops, void *context,
                                          const struct runtime_walk *walk, unsigned reg, uint64_t *value)
{
    if (reg >= ARCH_REGISTERS_MAX) {
        if (reg != RUNTIME_VECTOR_BYTES || !ops->vector_bytes)
            return false;
        *value = ops->vector_bytes(context);
        return *value != 0;
    }
    int slot = arch_slot(arch, reg);
    if (reg == arch->sp_reg || slot >= 0) {
        *value = slot >= 0 ? walk->regs.tracked[slot] : walk->regs.sp;
        return walk->regs.valid >> reg & 1;
    }
    if (walk->block_layout)
        return walk->block_layout->reg_offset[reg] != ARCH_NOT_KEPT &&
               ops->read(context, (walk->block_address + walk->block_layout->reg_offset[reg]) & runtime_word_mask(arch),
                         value);
    if (!walk->top || !(walk->top->valid >> reg & 1))
        return false;
    *value = walk->top->reg[reg];
    return true;
}

// ---- begin

// walk->regs is filled already; where the other registers are comes after.
RUNTIME_WALK_INLINE void runtime_begin(struct runtime_walk *walk, enum arch_pc_kind kind)
{
    walk->pc_kind = (uint8_t)kind;
    walk->classified = false;
    walk->block_layout = NULL;
    walk->top = NULL;
    walk->switches = 0;
    walk->flags = kind == ARCH_PC_EXACT ? QUT_FRAME_INTERRUPTED : 0;
    walk->index = 0;
    walk->end = (struct qut_end){.guessed_frame = QUT_NO_GUESS};
}

// ---- classify

// Needs what stands above, and is read here.
#include "libqut/runtime/walk_trampoline_inline.h"

// cfa = sp + cfa_offset; everything else unchanged.
RUNTIME_WALK_INLINE void runtime_set_leaf_rule(const struct arch *arch, struct qut_rule *rule, int32_t cfa_offset_bytes)
{
    memset(rule, 0, sizeof *rule);
    rule->kind = QUT_RULE_FRAME;
    rule->dex_pc_reg = QUT_NO_REGISTER;
    rule->cfa.reg = arch->sp_reg;
    rule->cfa.offset_bytes = cfa_offset_bytes;
}

// How the current frame is left is no more than a guess.
RUNTIME_WALK_INLINE void runtime_mark_guess(struct runtime_walk *walk)
{
    walk->flags |= QUT_FRAME_GUESSED;
    if (walk->end.guessed_frame == QUT_NO_GUESS)
        walk->end.guessed_frame = walk->index;
}

// Function-level tables are true where calls are made. An interrupted pc may stand elsewhere: at the first instruction
// cfa = sp and ra is in its register, or the call has just pushed it; in between, the rule is no more than a guess.
RUNTIME_WALK_OUTLINE void runtime_judge_body_only(const struct arch *arch, const struct runtime_code *code,
                                                  struct runtime_walk *walk)
{
    uint64_t vaddr = runtime_plain_pc(arch, walk->regs.pc) - code->load_bias;
    if (vaddr == runtime_table_row_start(code->table, vaddr)) {
        // Where frame programs describe what is before, this row may be the rest of a function that they began.
        runtime_table_rule(code->table, vaddr - 1, &walk->rule);
        if (walk->rule.kind != QUT_RULE_FRAME || (walk->rule.flags & QUT_RULE_BODY_ONLY)) {
            runtime_set_leaf_rule(arch, &walk->rule, arch->ra_in_register ? 0 : arch->word_bytes);
            if (!arch->ra_in_register)
                walk->rule.ra = (struct qut_reg_rule){.how = QUT_REG_AT_CFA, .offset_bytes = -arch->word_bytes};
            return;
        }
        runtime_table_rule(code->table, vaddr, &walk->rule);
    }
    runtime_mark_guess(walk);
}

// An interpreter's frame whose register is its own. Where it is the caller's, not saved yet or restored already, the
// mark stands there all the same: in Android 11's and 12's libart up to the end of the function.
RUNTIME_WALK_INLINE bool runtime_keeps_dex_pc(const struct arch *arch, const struct runtime_walk *walk)
{
    if (!(walk->flags & QUT_FRAME_INTERPRETER))
        return false;
    int slot = arch_slot(arch, walk->rule.dex_pc_reg);
    return slot >= 0 && walk->rule.tracked[slot].how != QUT_REG_SAME;
}

// The same.
#include "libqut/runtime/walk_machine_inline.h"

// *row_reaches_pc: the row found for a return address also holds at the address itself, which then begins no row.
RUNTIME_WALK_INLINE enum qut_end_reason runtime_find_rule(const struct arch *arch, const struct runtime_walk_ops *ops,
                                                          void *context, struct runtime_walk *walk,
                                                          struct runtime_code *code, bool *row_reaches_pc)
{
    uint64_t pc = runtime_plain_pc(arch, walk->regs.pc);
    uint64_t lookup_pc = arch_lookup_pc(pc, walk->pc_kind);
    *row_reaches_pc = false;
    walk->rule.kind = QUT_RULE_HOLE;
    ops->find(context, lookup_pc, code);
    walk->flags |= code->frame_flags;
    switch (code->state) {
    case RUNTIME_CODE_NO_MODULE: return QUT_END_NO_MODULE;
    case RUNTIME_CODE_PENDING: return QUT_END_TABLE_PENDING;
    case RUNTIME_CODE_NO_TABLE: return QUT_END_NO_TABLE;
    case RUNTIME_CODE_OF_MACHINE:
        *row_reaches_pc = true;
        return runtime_find_machine_rule(arch, ops, context, walk, code) ? QUT_END_NOT : QUT_END_NO_ROW;
    case RUNTIME_CODE_READY: break;
    }
    if (code->table->header->flags & QUT_TABLE_MANAGED)
        walk->flags |= QUT_FRAME_MANAGED;
    uint64_t vaddr = lookup_pc - code->load_bias, row_end;
    if (!runtime_table_next_row(code->table, &vaddr, &row_end, &walk->rule))
        return QUT_END_NO_ROW;
    *row_reaches_pc = row_end > pc - code->load_bias;
    if (walk->rule.kind == QUT_RULE_REFUSED)
        return QUT_END_REFUSED;
    return walk->rule.kind == QUT_RULE_FRAME ? QUT_END_NOT : QUT_END_NO_ROW;
}

// The same.
#include "libqut/runtime/walk_thunk_inline.h"

// Interrupted where the code was looked at not long ago, and was neither thunk nor trampoline.
RUNTIME_WALK_OUTLINE bool runtime_is_known_edge(const struct runtime_walk_ops *ops, const struct runtime_walk *walk)
{
    return walk->pc_kind == ARCH_PC_EXACT && ops->known_edge && ops->known_edge(walk->regs.pc, NULL);
}

RUNTIME_WALK_INLINE bool runtime_is_unknown_code(enum qut_end_reason found)
{
    return found == QUT_END_NO_MODULE || found == QUT_END_TABLE_PENDING || found == QUT_END_NO_TABLE;
}

// Fills what says how to leave this frame. False: the walk ends here.
RUNTIME_WALK_INLINE bool runtime_classify(const struct arch *arch, const struct runtime_walk_ops *ops, void *context,
                                          struct runtime_walk *walk)
{
    struct runtime_code code = {0};
    bool row_reaches_pc;
    walk->classified = true;
    walk->trampoline = NULL;
    walk->interpreted.method_cfa_bytes = 0;
    enum qut_end_reason found;
    do
        found = runtime_find_rule(arch, ops, context, walk, &code, &row_reaches_pc);
    while (runtime_is_unknown_code(found) && !runtime_is_known_edge(ops, walk) &&
           runtime_leave_thunk(arch, ops, context, walk));

    if (found == QUT_END_NOT) {
        // The trampoline's own rule gives the tracked registers; the signal context has all of them, and what was
        // interrupted may need any.
        bool is_signal = walk->rule.flags & QUT_RULE_SIGNAL;
        bool may_be_trampoline = is_signal || (walk->pc_kind == ARCH_PC_RETURN && !row_reaches_pc);
        if (may_be_trampoline && runtime_find_trampoline(arch, ops, context, walk))
            return true;
        if (walk->end.reason != QUT_END_NOT)
            return false;
        if (is_signal) {
            walk->flags |= QUT_FRAME_SIGNAL;
            return true;
        }
        bool is_body_only = walk->rule.flags & QUT_RULE_BODY_ONLY && code.state == RUNTIME_CODE_READY;
        if (is_body_only && walk->pc_kind == ARCH_PC_EXACT)
            runtime_judge_body_only(arch, &code, walk);
        if (walk->rule.dex_pc_reg != QUT_NO_REGISTER || walk->interpreted.method_cfa_bytes)
            walk->flags |= QUT_FRAME_INTERPRETER;
        return true;
    }

    uint64_t pc = runtime_plain_pc(arch, walk->regs.pc);
    if (arch->vsyscall && pc - arch->vsyscall < RUNTIME_VSYSCALL_BYTES) {
        runtime_set_leaf_rule(arch, &walk->rule, arch->word_bytes);
        walk->rule.ra = (struct qut_reg_rule){.how = QUT_REG_AT_CFA, .offset_bytes = -arch->word_bytes};
        return true;
    }
    // Another look at the code behind a call would be a system call a frame: 31 of JavaScript's took 330,000 cycles.
    bool is_known_call = walk->flags & QUT_FRAME_GUESSED && walk->pc_kind == ARCH_PC_RETURN && code.frame_pointers &&
                         ops->is_known_call && ops->is_known_call(pc);
    if (!is_known_call && !runtime_is_known_edge(ops, walk) && runtime_find_trampoline(arch, ops, context, walk))
        return true;
    if (walk->end.reason != QUT_END_NOT)
        return false;
    // A hole that begins behind the entry point is another function: crt1.o's _start was described and ends before it.
    uint64_t entry = runtime_plain_pc(arch, code.entry);
    if (entry && pc - entry < RUNTIME_ENTRY_BYTES_MAX &&
        (found != QUT_END_NO_ROW || runtime_table_row_start(code.table, pc - code.load_bias) <= entry - code.load_bias))
        return runtime_walk_ends(arch, walk, QUT_END_OUTERMOST);
    if (found == QUT_END_REFUSED)
        walk->end.refusal = walk->rule.reason;
    return runtime_walk_ends(arch, walk, found);
}

// Needs what stands above, and is read here.
#include "libqut/runtime/walk_traced_inline.h"

// ---- leave

// A caller was found: is it one that can be? If so the walk is there, but for walk->regs.
RUNTIME_WALK_INLINE bool runtime_enter_caller(const struct arch *arch, struct runtime_walk *walk, uint64_t pc,
                                              uint64_t sp, bool sp_is_known, bool guessed)
{
    bool from_signal = walk->flags & QUT_FRAME_SIGNAL;
    if (from_signal || !sp_is_known || !runtime_knows_sp(arch, walk)) {
        // The interrupted stack may be any other, and one without a known sp cannot be compared; but not for ever.
        if (walk->switches == RUNTIME_SWITCHES_MAX)
            return runtime_walk_ends(arch, walk, QUT_END_NO_PROGRESS);
        walk->switches++;
    } else {
        // Within a stack sp moves outward. Only an interrupted leaf can share its sp with its caller.
        bool leaf = walk->pc_kind == ARCH_PC_EXACT && sp == walk->regs.sp;
        if (sp <= walk->regs.sp && !leaf)
            return runtime_walk_ends(arch, walk, QUT_END_NO_PROGRESS);
    }
    // Nothing returns to 0: thread libraries mark the outermost frame so where unwind information does not. An
    // interrupted pc of 0 is a call through a null pointer.
    if (!from_signal && pc == 0)
        return runtime_walk_ends(arch, walk, QUT_END_OUTERMOST);

    walk->pc_kind = from_signal ? ARCH_PC_EXACT : ARCH_PC_RETURN;
    walk->flags = (uint8_t)((from_signal ? QUT_FRAME_INTERRUPTED : 0) | (guessed ? QUT_FRAME_GUESSED : 0));
    walk->classified = false;
    walk->block_layout = NULL;
    walk->top = NULL;
    walk->index++;
    if (guessed && walk->end.guessed_frame == QUT_NO_GUESS)
        walk->end.guessed_frame = walk->index;
    return true;
}

RUNTIME_WALK_INLINE bool runtime_read_saved(const struct arch *arch, const struct runtime_walk_ops *ops, void *context,
                                            struct runtime_walk *walk, unsigned offset_bytes, uint64_t *value)
{
    uint64_t address = (walk->trampoline_block + offset_bytes) & runtime_word_mask(arch);
    if (ops->read(context, address, value))
        return true;
    walk->end.address = address;
    return runtime_walk_ends(arch, walk, QUT_END_BAD_MEMORY);
}

RUNTIME_WALK_OUTLINE bool runtime_leave_trampoline(const struct arch *arch, const struct runtime_walk_ops *ops,
                                                   void *context, struct runtime_walk *walk)
{
    const struct arch_register_layout *layout = walk->trampoline->layout;
    uint64_t pc, sp;
    if (!runtime_read_saved(arch, ops, context, walk, layout->pc_offset, &pc) ||
        !runtime_read_saved(arch, ops, context, walk, layout->reg_offset[arch->sp_reg], &sp))
        return false;
    pc = ops->strip(context, pc);
    if (!runtime_enter_caller(arch, walk, pc, sp, true, false))
        return false;
    walk->block_address = walk->trampoline_block;
    walk->block_layout = layout;
    walk->regs.pc = pc;
    walk->regs.sp = sp;
    walk->regs.valid = (uint64_t)1 << arch->sp_reg;
    for (unsigned slot = 0; slot < arch->tracked_count; slot++) {
        uint64_t address = (walk->block_address + layout->reg_offset[arch->tracked[slot]]) & runtime_word_mask(arch);
        if (ops->read(context, address, &walk->regs.tracked[slot]))
            walk->regs.valid |= (uint64_t)1 << arch->tracked[slot];
    }
    return true;
}

// Needs what stands above, and is read here.
#include "libqut/runtime/walk_exchanged_inline.h"

// What evaluating a rule asks for, and which address could not be read, for the end's report.
struct runtime_frame_access {
    const struct arch *arch;
    const struct runtime_walk_ops *ops;
    void *context;
    const struct runtime_walk *walk;
    uint64_t failed_address;
};

RUNTIME_WALK_INLINE bool runtime_access_register(void *frame, unsigned reg, uint64_t *value)
{
    const struct runtime_frame_access *access = frame;
    return runtime_register(access->arch, access->ops, access->context, access->walk, reg, value);
}

RUNTIME_WALK_INLINE bool runtime_access_memory(void *context, uint64_t address, uint64_t *value)
{
    struct runtime_frame_access *access = context;
    if (access->ops->read(access->context, address, value))
        return true;
    access->failed_address = address;
    return false;
}

// true_pc: what counts in place of the return address; 0: that counts.
RUNTIME_WALK_INLINE bool runtime_leave_to(const struct arch *arch, const struct runtime_walk_ops *ops, void *context,
                                          struct runtime_walk *walk, uint64_t true_pc)
{
    struct runtime_frame_access access = {arch, ops, context, walk, 0};
    struct runtime_evaluation evaluation = {
        .reg = runtime_access_register,
        .frame = &access,
        .pc = walk->regs.pc,
        .read = runtime_access_memory,
        .context = &access,
        .word_mask = runtime_word_mask(arch),
    };
    if (!runtime_keeps_dex_pc(arch, walk) ||
        !runtime_register(arch, ops, context, walk, walk->rule.dex_pc_reg, &walk->dex_pc))
        walk->dex_pc = 0;
    struct arch_caller caller;
    uint64_t cfa;
    switch (runtime_rule_eval_inline(arch, &walk->rule, &evaluation, &caller, &cfa)) {
    case RUNTIME_EVAL_OK: break;
    case RUNTIME_EVAL_END: return runtime_walk_ends(arch, walk, QUT_END_OUTERMOST);
    case RUNTIME_EVAL_NO_RULE: return runtime_walk_ends(arch, walk, QUT_END_NO_ROW);
    case RUNTIME_EVAL_NO_REGISTER: return runtime_walk_ends(arch, walk, QUT_END_NO_REGISTER);
    case RUNTIME_EVAL_BAD_MEMORY:
        walk->end.address = access.failed_address;
        return runtime_walk_ends(arch, walk, QUT_END_BAD_MEMORY);
    }
    if (walk->interpreted.method_cfa_bytes)
        walk->dex_pc = runtime_interpreted(arch, ops, context, walk, cfa);
    caller.pc = ops->strip(context, caller.pc);
    bool guessed = false;
    if (runtime_is_exchanged(walk)) {
        if (caller.pc == 0) // none that was kept
            return runtime_walk_ends(arch, walk, QUT_END_NOT_CODE);
        guessed = walk->flags & QUT_FRAME_GUESSED;
        runtime_pass_exchanged(walk);
    }
    if (true_pc)
        caller.pc = true_pc;
    if (!runtime_enter_caller(arch, walk, caller.pc, caller.sp, caller.valid >> arch->sp_reg & 1, guessed))
        return false;
    walk->regs = caller;
    if (walk->dex_pc) {
        walk->flags = QUT_FRAME_DEX;
        walk->classified = true;
    }
    return true;
}

RUNTIME_WALK_OUTLINE bool runtime_leave_by_rule(const struct arch *arch, const struct runtime_walk_ops *ops,
                                                void *context, struct runtime_walk *walk)
{
    return runtime_leave_to(arch, ops, context, walk, 0);
}

// The walk has ended as at the outermost frame. True: it has not.
RUNTIME_WALK_OUTLINE bool runtime_leave_unfilled(const struct arch *arch, const struct runtime_walk_ops *ops,
                                                 void *context, struct runtime_walk *walk)
{
    uint64_t pc = runtime_find_missing_return(arch, ops, context, walk);
    return pc && runtime_leave_to(arch, ops, context, walk, pc);
}

// From the bytecode to its interpreter's caller: its registers are there.
RUNTIME_WALK_INLINE bool runtime_leave_dex(struct runtime_walk *walk)
{
    walk->flags = 0;
    walk->classified = false;
    walk->index++;
    return true;
}

// ---- leave by a guess, where nothing is known about the pc

// Needs what stands above, and is read here.
#include "libqut/runtime/walk_guess_inline.h"

// ---- leave to another stack

// The same.
#include "libqut/runtime/walk_switch_inline.h"

// ---- leave, whichever way

// CANTUNWIND is what Arm's linkers say of code that was built without unwind tables.
RUNTIME_WALK_INLINE bool runtime_may_guess(const struct runtime_walk *walk)
{
    uint32_t reason = walk->end.reason;
    return reason == QUT_END_NO_ROW || reason == QUT_END_NO_MODULE || reason == QUT_END_NO_TABLE ||
           (reason == QUT_END_REFUSED && walk->end.refusal == QUT_REFUSED_CANTUNWIND);
}

// Leaves a frame that was classified.
RUNTIME_WALK_INLINE bool runtime_leave(const struct arch *arch, const struct runtime_walk_ops *ops, void *context,
                                       struct runtime_walk *walk)
{
    if (walk->flags & QUT_FRAME_DEX)
        return runtime_leave_dex(walk);
    if (walk->end.reason == QUT_END_NOT) {
        if (walk->trampoline)
            return runtime_leave_trampoline(arch, ops, context, walk);
        return runtime_leave_by_rule(arch, ops, context, walk) ||
               (walk->end.reason == QUT_END_OUTERMOST && runtime_leave_unfilled(arch, ops, context, walk));
    }
    if (ops->leave_switch && walk->end.reason == QUT_END_REFUSED && walk->end.refusal == QUT_REFUSED_STACK_SWITCH)
        return runtime_knows_sp(arch, walk) && runtime_leave_switch(arch, ops, context, walk);
    if (!runtime_may_guess(walk))
        return false;
    struct qut_end end = walk->end;
    walk->end.reason = QUT_END_NOT;
    walk->end.refusal = 0;
    if (runtime_guess_caller(arch, ops, context, walk))
        return true;
    walk->end = end;
    return false;
}

// ---- what is given out

RUNTIME_WALK_INLINE void runtime_describe(const struct arch *arch, const struct runtime_walk *walk,
                                          struct qut_frame *frame)
{
    bool is_thumb = !(walk->flags & QUT_FRAME_DEX) && runtime_plain_pc(arch, walk->regs.pc) != walk->regs.pc;
    *frame = (struct qut_frame){
        .pc = runtime_walk_pc(arch, walk),
        .lookup_pc = runtime_walk_lookup_pc(arch, walk),
        .sp = runtime_knows_sp(arch, walk) ? walk->regs.sp : 0,
        .flags = walk->flags | (is_thumb ? QUT_FRAME_THUMB : 0),
    };
}

#endif
