// SPDX-License-Identifier: Apache-2.0
// A part of walk_inline.h: interrupted in a thunk, which a call tracer put before a function (libqut/arch/thunk.h).
// Nothing describes that code. Before the function's own instructions the frame is as it was called; in their copies it
// is what the function's table says of the instruction that was copied.
#ifndef QUT_RUNTIME_WALK_THUNK_INLINE_H
#define QUT_RUNTIME_WALK_THUNK_INLINE_H

#include "libqut/arch/thunk.h"

enum { RUNTIME_THUNK_SKIPPED_MAX = 15 }; // bytes of nops that are not copied

// The thunk around pc.
RUNTIME_WALK_OUTLINE bool runtime_thunk_around(const struct arch *arch, const struct runtime_walk_ops *ops,
                                               void *context, uint64_t pc, struct arch_thunk *thunk)
{
    uint64_t start = pc & ~(uint64_t)(ARCH_THUNK_ALIGNMENT - 1);
    for (; pc - start < ARCH_THUNK_BYTES_MAX; start -= ARCH_THUNK_ALIGNMENT) {
        uint8_t bytes[ARCH_THUNK_HEAD_BYTES];
        if (ops->read_code(context, start, bytes, sizeof bytes) != sizeof bytes)
            return false;
        if (arch_thunk_head(arch, bytes, start, thunk))
            return true;
    }
    return false;
}

// Where in the function the jump to the thunk stands: `copied_bytes` before what follows the last instruction that was
// copied, or a few less, which were not. 0: there is none.
RUNTIME_WALK_OUTLINE uint64_t runtime_thunk_entry(const struct runtime_walk_ops *ops, void *context,
                                                  const struct arch_thunk *thunk, uint64_t behind,
                                                  uint64_t copied_bytes)
{
    uint8_t bytes[RUNTIME_THUNK_SKIPPED_MAX + ARCH_THUNK_JUMP_BYTES];
    uint64_t at = behind - copied_bytes - RUNTIME_THUNK_SKIPPED_MAX, target;
    if (ops->read_code(context, at, bytes, sizeof bytes) != sizeof bytes)
        return 0;
    for (unsigned i = 0; i <= RUNTIME_THUNK_SKIPPED_MAX; i++)
        if (arch_thunk_jumps(bytes + i, at + i, &target) && target == thunk->start)
            return at + i;
    return 0;
}

// The jump behind the copies, and where it leads. Copies have the length of what they are of, but for branches and
// calls: counted from there, those before pc do not matter. 0: it is not found, or the stack is not as in the function.
RUNTIME_WALK_OUTLINE uint64_t runtime_thunk_ends(const struct runtime_walk_ops *ops, void *context,
                                                 const struct arch_thunk *thunk, uint64_t pc, uint64_t *behind)
{
    uint8_t bytes[ARCH_THUNK_JUMP_BYTES];
    for (uint64_t at = pc; at < thunk->end; at++) {
        if (ops->read_code(context, at, bytes, sizeof bytes) != sizeof bytes)
            return 0;
        // A call that was moved: push $low; movl $high, 4(%rsp)
        if (bytes[0] == 0xc7 && bytes[1] == 0x44 && bytes[2] == 0x24 && bytes[3] == 0x04)
            return 0;
        if (arch_thunk_jumps(bytes, at, behind))
            return at;
    }
    return 0;
}

// Fills walk->rule. The frame's pc becomes that of the function, as it would be without the thunk: there it has a name.
// `code` is overwritten. What each part needs of the stack is needed in turn, never together.
RUNTIME_WALK_OUTLINE bool runtime_find_thunk(const struct arch *arch, const struct runtime_walk_ops *ops, void *context,
                                             struct runtime_walk *walk, struct runtime_code *code)
{
    struct arch_thunk thunk;
    uint64_t pc = walk->regs.pc, behind;
    if (!runtime_thunk_around(arch, ops, context, pc, &thunk))
        return false;
    bool is_copy = pc >= thunk.moved && !(thunk.moved_end && pc >= thunk.moved_end);
    uint64_t end = runtime_thunk_ends(ops, context, &thunk, is_copy ? pc : thunk.moved, &behind);
    uint64_t entry = end ? runtime_thunk_entry(ops, context, &thunk, behind, end - thunk.moved) : 0;
    if (!is_copy) {
        runtime_set_leaf_rule(arch, &walk->rule, arch->word_bytes);
        walk->rule.ra = (struct qut_reg_rule){.how = QUT_REG_AT_CFA, .offset_bytes = -arch->word_bytes};
        walk->regs.pc = entry ? entry : pc;
        return true;
    }
    if (!entry)
        return false;
    uint64_t original = behind - (end - pc);
    ops->find(context, original, code);
    if (code->state == RUNTIME_CODE_READY)
        runtime_table_rule(code->table, original - code->load_bias, &walk->rule);
    *code = (struct runtime_code){0}; // it was the function's
    if (walk->rule.kind != QUT_RULE_FRAME || (walk->rule.flags & QUT_RULE_SIGNAL))
        return false;
    walk->regs.pc = original;
    return true;
}

#endif
