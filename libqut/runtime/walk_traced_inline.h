// SPDX-License-Identifier: Apache-2.0
// A part of walk_inline.h: return addresses that method tracing of Android's runtime has exchanged
// (QUT_REFUSED_INSTRUMENTED), where somebody knows the runtime's records. What such an address leads to was never
// called, and is no frame: the frame's pc becomes the true one. The code that it leads to makes room for the true
// address and fills it later: up to then its frame has a return address of 0, which means the outermost frame
// elsewhere.
#ifndef QUT_RUNTIME_WALK_TRACED_INLINE_H
#define QUT_RUNTIME_WALK_TRACED_INLINE_H

// Of what was classified: whether it is such an address, or that code.
RUNTIME_WALK_INLINE bool runtime_is_traced(const struct runtime_walk *walk)
{
    return __builtin_expect(walk->end.reason == QUT_END_REFUSED, 0) && walk->end.refusal == QUT_REFUSED_INSTRUMENTED;
}

// The same. True: the frame has its true pc, and is to be classified, once: that pc may not be exchanged again. The
// refused row begins where return addresses are looked up; further on stands code whose rows are not believed.
RUNTIME_WALK_OUTLINE bool runtime_find_true_return(const struct arch *arch, const struct runtime_walk_ops *ops,
                                                   void *context, struct runtime_walk *walk)
{
    struct runtime_code code = {0};
    uint64_t pc = arch_lookup_pc(runtime_plain_pc(arch, walk->regs.pc), walk->pc_kind);
    if (!ops->true_return || walk->pc_kind != ARCH_PC_RETURN || !runtime_knows_sp(arch, walk))
        return false;
    ops->find(context, pc, &code);
    uint64_t vaddr = pc - code.load_bias;
    if (code.state != RUNTIME_CODE_READY || vaddr != runtime_table_row_start(code.table, vaddr) ||
        !ops->true_return(context, walk->regs.sp, &pc))
        return false;
    walk->regs.pc = ops->strip(context, pc);
    walk->end.reason = QUT_END_NOT;
    walk->end.refusal = 0;
    return true;
}

// Whether the walk is in that code: no hole between its row and the one before the code's beginning.
RUNTIME_WALK_OUTLINE bool runtime_is_tracing_exit(const struct arch *arch, const struct runtime_walk_ops *ops,
                                                  void *context, const struct runtime_walk *walk)
{
    enum { ROWS_MAX = 64 };
    struct runtime_code code = {0};
    uint64_t pc = arch_lookup_pc(runtime_plain_pc(arch, walk->regs.pc), walk->pc_kind), end;
    ops->find(context, pc, &code);
    if (code.state != RUNTIME_CODE_READY)
        return false;
    uint64_t vaddr = pc - code.load_bias;
    for (unsigned i = 0; i < ROWS_MAX; i++) {
        const struct qut_rule_cell *cell = qut_table_cell(code.table, vaddr, &end);
        if (!cell || cell->form == QUT_CELL_REFUSED)
            return cell && cell->aux == QUT_REFUSED_INSTRUMENTED;
        uint64_t start = runtime_table_row_start(code.table, vaddr);
        if (start == 0 || start > vaddr)
            return false;
        vaddr = start - 1;
    }
    return false;
}

// The walk has ended as at the outermost frame, since a return address is 0. What the address should be: the walk has
// not ended. 0: it has.
RUNTIME_WALK_OUTLINE uint64_t runtime_find_missing_return(const struct arch *arch, const struct runtime_walk_ops *ops,
                                                          void *context, struct runtime_walk *walk)
{
    const struct qut_cfa *cfa = &walk->rule.cfa;
    if (!runtime_knows_sp(arch, walk) || cfa->how != QUT_CFA_REG || cfa->reg != arch->sp_reg ||
        walk->rule.ra.how != QUT_REG_AT_CFA || !runtime_is_tracing_exit(arch, ops, context, walk))
        return 0;
    uint64_t pc = 0;
    if (!ops->true_return || !ops->true_return(context, walk->regs.sp + (uint64_t)(int64_t)cfa->offset_bytes, &pc)) {
        walk->end.refusal = QUT_REFUSED_INSTRUMENTED;
        runtime_walk_ends(arch, walk, QUT_END_REFUSED);
        return 0;
    }
    walk->end.reason = QUT_END_NOT;
    return ops->strip(context, pc);
}

#endif
