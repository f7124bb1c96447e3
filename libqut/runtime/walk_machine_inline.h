// SPDX-License-Identifier: Apache-2.0
// A part of walk_inline.h: how a frame of a virtual machine's code is left, as the machine says, and what has to be
// true of the caller before that is believed.
#ifndef QUT_RUNTIME_WALK_MACHINE_INLINE_H
#define QUT_RUNTIME_WALK_MACHINE_INLINE_H

enum { RUNTIME_METHOD_BYTES_MAX = 1 << 16 }; // of its bytecode
// WITH_ARGUMENTS: code of the machine, which has pushed RUNTIME_PUSHED_ARGUMENTS words for what it has called.
enum runtime_callers { RUNTIME_CALLERS_ALL, RUNTIME_CALLERS_OF_MACHINE, RUNTIME_CALLERS_WITH_ARGUMENTS };

// In walk_guess_inline.h.
RUNTIME_WALK_OUTLINE bool runtime_is_caller(const struct arch *arch, const struct runtime_walk_ops *ops, void *context,
                                            struct qut_rule *rule, uint64_t ra, enum runtime_callers which);

// Whether the word at `at` is a return address to code of a machine, and with cfa = at + word leads on: where the
// caller's rule is one by sp, another such address lies where it says, or behind the
// arguments that the caller has pushed. Old return addresses lie about in stacks.
RUNTIME_WALK_OUTLINE bool runtime_returns_to_machine(const struct arch *arch, const struct runtime_walk_ops *ops,
                                                     void *context, uint64_t at, enum runtime_callers which,
                                                     uint64_t *ra)
{
    struct qut_rule rule;
    uint64_t outer;
    if (!ops->read(context, at, ra))
        return false;
    *ra = ops->strip(context, *ra);
    if (!runtime_is_caller(arch, ops, context, &rule, *ra, which))
        return false;
    if (which == RUNTIME_CALLERS_ALL)
        return true;
    if (rule.kind != QUT_RULE_FRAME || rule.cfa.reg != arch->sp_reg)
        return true;
    at += (uint64_t)(int64_t)rule.cfa.offset_bytes;
    if (which == RUNTIME_CALLERS_WITH_ARGUMENTS)
        at += (uint64_t)RUNTIME_PUSHED_ARGUMENTS * arch->word_bytes;
    return ops->read(context, at, &outer) &&
           runtime_is_caller(arch, ops, context, &rule, ops->strip(context, outer), RUNTIME_CALLERS_OF_MACHINE);
}

// How a virtual machine says that a frame of its code is left. A rule that holds in most of a method's body has to lead
// to a caller, which for such code is code of the machine: ra = *(sp + cfa_offset - word). So has any rule by sp, where
// sp is guessed. Where it does not, the body may have pushed more: HotSpot's comparison of strings does, around its
// loops, and so do calls of some stubs. The caller that is found then is a guess.
RUNTIME_WALK_OUTLINE bool runtime_find_machine_rule(const struct arch *arch, const struct runtime_walk_ops *ops,
                                                    void *context, struct runtime_walk *walk,
                                                    const struct runtime_code *code)
{
    uint64_t pc = runtime_plain_pc(arch, walk->regs.pc), ra;
    if (!ops->machine_rule(context, code->machine, pc, walk->pc_kind, &walk->rule, &walk->interpreted))
        return false;
    bool is_sure = !(walk->rule.flags & QUT_RULE_BODY_ONLY) &&
                   !(walk->flags & QUT_FRAME_GUESSED && walk->rule.cfa.reg == arch->sp_reg);
    if (is_sure)
        return true;
    enum runtime_callers which = code->is_called_by_all ? RUNTIME_CALLERS_ALL : RUNTIME_CALLERS_OF_MACHINE;
    uint64_t at = walk->regs.sp + (uint64_t)(int64_t)walk->rule.cfa.offset_bytes - arch->word_bytes;
    for (unsigned pushed = 0; pushed <= RUNTIME_PUSHED_WORDS_MAX; pushed++, at += arch->word_bytes) {
        if (!runtime_returns_to_machine(arch, ops, context, at, which, &ra))
            continue;
        if (pushed) {
            walk->rule.cfa.offset_bytes += (int32_t)(pushed * arch->word_bytes);
            runtime_mark_guess(walk);
        }
        return true;
    }
    return false;
}

// What a frame of the interpreter runs: arch_interpreted_word; 0: not known. Where its bytecode is stands in a
// register, which C++ gives back to it, and was stored before a call that could want to know. When a method has
// returned, the register is what that left there; then what was stored holds, which is of the same method. Native
// methods store 0.
RUNTIME_WALK_OUTLINE uint64_t runtime_interpreted(const struct arch *arch, const struct runtime_walk_ops *ops,
                                                  void *context, const struct runtime_walk *walk, uint64_t cfa)
{
    const struct arch_interpreted *where = &walk->interpreted;
    uint64_t method_at = cfa + (uint64_t)(int64_t)where->method_cfa_bytes, method, stored, kept;
    uint64_t bytecode_at = cfa + (uint64_t)(int64_t)where->bytecode_cfa_bytes;
    // A frame that is being made has not pushed them yet.
    if (method_at < walk->regs.sp || !ops->read(context, method_at, &method))
        return 0;
    if (where->bytecode_cfa_bytes == 0 || bytecode_at < walk->regs.sp || !ops->read(context, bytecode_at, &stored) ||
        stored == 0)
        return method;
    if (!runtime_register(arch, ops, context, walk, where->bytecode_reg, &kept) ||
        kept - stored + RUNTIME_METHOD_BYTES_MAX >= (uint64_t)2 * RUNTIME_METHOD_BYTES_MAX)
        kept = stored;
    return arch_interpreted_word(method, kept);
}

#endif
