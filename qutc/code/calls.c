// SPDX-License-Identifier: Apache-2.0
// What a call leaves of what was known, and whether it comes back.
#include "qutc/code/inside.h"

// A callee that does nothing but tell its caller where that is.
static bool tells_pc(const struct code_follower *f, uint32_t callee, uint8_t *reg)
{
    struct code_instruction first, second;
    if (!code_read(f, callee, &first) || first.op_count != 1 || first.ops[0].kind != CODE_OP_LOAD ||
        first.ops[0].from != f->arch->sp_reg || first.ops[0].number != 0 || f->arch->ra_in_register ||
        callee + first.size_bytes >= f->text_size || !code_read(f, callee + first.size_bytes, &second))
        return false;
    *reg = first.ops[0].to;
    return first.flow == CODE_NEXT && second.flow == CODE_RETURN;
}

// Where unwind information begins anew behind a call, that does not come back: what stands there is a landing pad, or
// what was moved out of a function's way. Compilers' rows change behind instructions that change something.
static bool is_stated_end(struct code_follower *f, uint32_t pc, uint32_t next)
{
    const struct cfi_row_list *rows = f->stated;
    if (!f->visit || f->code->callees_pop)
        return false;
    size_t i = f->stated_row;
    if (i >= rows->count || rows->rows[i].pc_rel > pc || (i + 1 < rows->count && rows->rows[i + 1].pc_rel <= pc))
        i = f->stated_row = cfi_row_list_index(rows, pc);
    return i != SIZE_MAX && i + 1 < rows->count && rows->rows[i + 1].pc_rel == next;
}

uint32_t code_callee_of(const struct code_follower *f, const struct code_instruction *in)
{
    bool is_known = in->flow == CODE_CALL && in->through == CODE_REG_NONE && code_is_in_text(f, in->target);
    return is_known ? (uint32_t)(in->target - f->text_start) : UINT32_MAX;
}

bool code_call(struct code_walk *w, struct code_run *run, const struct code_instruction *in, uint32_t pc)
{
    struct code_follower *f = w->f;
    if (is_stated_end(f, pc, pc + in->size_bytes) || code_call_ends(f, in))
        return false;
    if (f->marks[pc] & CODE_MARK_LEAVES) {
        w->walked->is_blaming = true;
        return false;
    }
    uint64_t kept = f->code->kept, next = f->text_start + pc + in->size_bytes;
    uint8_t told = CODE_REG_NONE;
    run->is_doubtful = true;
    uint32_t callee = code_callee_of(f, in);
    if (callee != UINT32_MAX) {
        const struct code_function *function = code_function_at(f, callee);
        const struct code_learned *learned = function || f->visit ? NULL : code_learned_at(f, callee);
        const struct code_assumption taken = code_taken_for(f, callee);
        if (w->phase == CODE_PHASE_JUDGE && !code_assume(w, &taken))
            return false;
        // Where all that is stated is looked at, what is stated behind such calls says it.
        if (function && (function->never_returns || (function->ends_by_name && !f->visit)))
            return false;
        run->is_doubtful = function ? !function->comes_back : !learned || !learned->comes_back;
        if (callee != w->start)
            kept = (kept & ~taken.loses) | taken.keeps;
        if (tells_pc(f, callee, &told)) {
            kept = f->code->kept & ~((uint64_t)1 << told);
            run->is_doubtful = false;
        }
    }
    code_state_call(&w->machine, &run->state, kept, pc);
    if (told != CODE_REG_NONE)
        run->state.reg[told] = (struct code_value){.kind = CODE_VALUE_CONST, .number = (int64_t)next};
    run->call = pc;
    return true;
}

// Behind those that start a thread there may be another stack.
bool code_system_call(struct code_walk *w, struct code_run *run, const struct code_value *number, uint32_t pc)
{
    const struct code_arch *code = w->f->code;
    for (unsigned i = 0; i < sizeof code->leaves / sizeof *code->leaves; i++)
        if (code->leaves[i] && number->kind == CODE_VALUE_CONST && number->number == code->leaves[i])
            return false;
    for (unsigned i = 0; i < sizeof code->clones / sizeof *code->clones; i++)
        if (code->clones[i] && number->kind == CODE_VALUE_CONST && number->number == code->clones[i])
            run->state.reg[w->f->arch->sp_reg] = (struct code_value){.kind = CODE_VALUE_BASE, .of = pc};
    run->state.version = ++w->machine.versions;
    return true;
}
