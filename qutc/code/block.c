// SPDX-License-Identifier: Apache-2.0
// One way through a function, from a place where ways meet to the next: what instructions make of a state, and where it
// goes on.
#include "qutc/code/inside.h"

uint32_t code_leader_at(struct code_walk *w, uint32_t pc)
{
    uint64_t hash = base_hash_word(0, pc);
    for (uint32_t step = 0, i; (i = base_hash_next(&w->leader_index, hash, &step)) != BASE_HASH_NONE;)
        if (w->leaders.items[i].pc == pc)
            return i;
    struct code_leader *leader = BASE_ADD(&w->leaders);
    if (!leader || !base_hash_add(&w->leader_index, hash, (uint32_t)w->leaders.count - 1)) {
        w->no_memory = true;
        return UINT32_MAX;
    }
    memset(leader, 0, offsetof(struct code_leader, state));
    leader->pc = pc;
    leader->part = UINT32_MAX;
    return (uint32_t)w->leaders.count - 1;
}

// Whether the stack is as it was at the function's entry, with the return address in its place.
bool code_is_entry(const struct code_machine *machine, const struct code_state *state)
{
    const struct arch *arch = machine->arch;
    const struct code_value *sp = &state->reg[arch->sp_reg];
    if (!code_value_is_entry(sp, arch->sp_reg, 0))
        return false;
    if (arch->ra_in_register)
        return code_value_is_entry(&state->reg[arch->ra_reg], arch->ra_reg, 0);
    const struct code_slot *slot = code_state_slot(machine, state, sp, 0);
    return slot && code_value_is_entry(&slot->value, arch->ra_reg, 0);
}

void code_give_up(struct code_walk *w, enum code_outcome outcome, uint32_t at)
{
    if (w->walked->outcome == CODE_FOLLOWED) {
        w->walked->outcome = outcome;
        w->walked->at = at;
    }
}

void code_leave_out_call(struct code_walk *w, uint32_t call)
{
    w->f->marks[call] |= CODE_MARK_LEAVES;
    w->again = true;
}

// What is at the end of this way cannot be. Back to the calls that it came by; those do not come back. Where it came by
// none, what we know of the function is wrong.
static void contradict(struct code_walk *w, const struct code_run *run, enum code_outcome outcome, uint32_t at)
{
    if (w->phase != CODE_PHASE_JUDGE || w->again || w->needs_edges)
        return;
    // An element is doubted before a call: else calls of what another function's table leads to pass for some that end.
    if (run->guess.jump != UINT32_MAX) {
        code_leave_out_element(w, &run->guess);
        return;
    }
    if (run->call != UINT32_MAX) {
        code_leave_out_call(w, run->call);
        return;
    }
    if (!w->has_edges) {
        w->needs_edges = true;
        return;
    }
    enum { BACK_MAX = 256 };
    uint32_t back[BACK_MAX];
    unsigned count = 0, done = 0;
    back[count++] = run->from;
    while (done < count) {
        uint32_t leader = back[done++];
        if (leader == 0) { // the function's entry
            code_give_up(w, outcome, at);
            return;
        }
        for (uint32_t i = w->leaders.items[leader].first_edge; i; i = w->edges.items[i - 1].next) {
            const struct code_edge *edge = &w->edges.items[i - 1];
            bool is_known = false;
            for (unsigned k = 0; k < count; k++)
                is_known |= back[k] == edge->from;
            if (edge->call != UINT32_MAX)
                code_leave_out_call(w, edge->call);
            else if (!is_known && count < BACK_MAX)
                back[count++] = edge->from;
            else if (!is_known)
                code_give_up(w, CODE_TOO_LARGE, at);
        }
    }
    if (!w->again) // it came by nothing that was seen yet: edges are complete when all blocks have run
        code_give_up(w, outcome, at);
}

void code_deliver(struct code_walk *w, const struct code_run *run, uint32_t to_pc)
{
    uint32_t to = code_leader_at(w, to_pc);
    if (w->no_memory)
        return;
    struct code_leader *leader = &w->leaders.items[to];
    if (w->phase == CODE_PHASE_JUDGE)
        code_part_goes_to(w, run, to);
    if (w->phase >= CODE_PHASE_JUDGE)
        return;
    if (w->phase == CODE_PHASE_EDGES) {
        struct code_edge *edge = BASE_ADD(&w->edges);
        if (!edge)
            w->no_memory = true;
        else
            *edge = (struct code_edge){.from = run->from,
                                       .to = to,
                                       .next = leader->first_edge,
                                       .call = run->call,
                                       .is_behind_call = run->is_behind_call,
                                       .sp = run->state.reg[w->f->arch->sp_reg]};
        leader->first_edge = (uint32_t)w->edges.count;
        return;
    }
    bool changed = true;
    struct code_guess guess =
        w->guessed_by == UINT32_MAX ? run->guess : (struct code_guess){w->guessed_by, to_pc, false};
    unsigned sp = w->f->arch->sp_reg;
    if (leader->has_state &&
        code_leave_out_guess(w, &leader->state.reg[sp], &run->state.reg[sp], &guess, &leader->guess))
        return;
    if (leader->has_state) {
        w->sp_differs |= !code_value_same(&leader->state.reg[sp], &run->state.reg[sp]);
        changed = code_state_merge(&leader->state, &run->state, sp, to_pc);
    } else {
        code_state_copy(&leader->state, &run->state);
        leader->guess = guess;
    }
    leader->has_state = true;
    if (!changed || leader->is_queued)
        return;
    if (++leader->visits > CODE_VISITS_MAX) {
        code_give_up(w, CODE_TOO_LARGE, to_pc);
        return;
    }
    uint32_t *place = BASE_ADD(&w->queue);
    if (!place) {
        w->no_memory = true;
        return;
    }
    *place = to;
    leader->is_queued = true;
}

// Of registers, those that do not hold the caller's.
static uint64_t other_registers(const struct code_walk *w, const struct code_state *state)
{
    uint64_t other = 0;
    for (unsigned reg = 0; reg < w->f->arch->register_count; reg++)
        if (reg != w->f->arch->sp_reg && !code_value_is_entry(&state->reg[reg], reg, 0))
            other |= (uint64_t)1 << reg;
    return other;
}

// The caller's registers are those that it called with.
static void note_lost(struct code_walk *w, const struct code_state *state)
{
    uint64_t other = other_registers(w, state);
    w->walked->loses |= other & w->f->code->kept;
    w->walked->changes |= other;
}

static void note_left(struct code_walk *w, const struct code_state *state, uint32_t pc, bool is_behind)
{
    struct code_left *place = BASE_ADD(&w->left_for);
    if (place)
        *place = (struct code_left){pc, other_registers(w, state) & w->f->code->kept, is_behind};
    w->no_memory |= !place;
}

static void end_by_return(struct code_walk *w, const struct code_run *run, const struct code_instruction *in,
                          uint32_t pc)
{
    const struct arch *arch = w->f->arch;
    const struct code_value *sp = &run->state.reg[arch->sp_reg], *to = &run->state.reg[in->through];
    int64_t popped = arch->ra_in_register ? 0 : arch->word_bytes;
    bool is_entry = sp->kind == CODE_VALUE_ENTRY && sp->of == arch->sp_reg;
    // Another stack, or one that is not known here: no rule stands here either.
    if (w->phase != CODE_PHASE_JUDGE || !is_entry) {
        w->walked->is_elsewhere |= w->phase == CODE_PHASE_JUDGE;
        return;
    }
    // Where no function takes more off its caller's stack, a return that does is no code: an immediate of another one.
    bool pops_too_little = sp->number<popped, pops_more = sp->number> popped && !w->f->code->callees_pop;
    if (!code_value_is_entry(to, arch->ra_reg, 0) || pops_too_little || pops_more) {
        contradict(w, run, CODE_BAD_RETURN, pc);
        return;
    }
    w->walked->returns = true;
    code_part_returns(w, run);
    note_lost(w, &run->state);
}

static void end_elsewhere(struct code_walk *w, const struct code_run *run, uint32_t pc)
{
    if (w->phase != CODE_PHASE_JUDGE)
        return;
    const struct code_value *sp = &run->state.reg[w->f->arch->sp_reg];
    if (code_is_entry(&w->machine, &run->state)) {
        w->walked->leaves = true;
        code_part_returns(w, run);
        note_lost(w, &run->state);
    } else if (sp->kind == CODE_VALUE_ENTRY) {
        contradict(w, run, CODE_BAD_LEAVE, pc);
    } else {
        w->walked->is_elsewhere = true;
    }
}

// A jump or a branch to an address in the file.
static void go_to(struct code_walk *w, const struct code_run *run, uint64_t vaddr, uint32_t pc)
{
    struct code_follower *f = w->f;
    if (!code_is_in_text(f, vaddr)) {
        contradict(w, run, CODE_BAD_LEAVE, pc);
        return;
    }
    uint32_t target = (uint32_t)(vaddr - f->text_start);
    uint16_t *marks = &f->marks[target];
    if (*marks & CODE_MARK_LEADER) {
        code_deliver(w, run, target);
        return;
    }
    // Another function: left for it, or a part of this one that lies elsewhere.
    bool is_entry = code_is_entry(&w->machine, &run->state);
    bool is_part = !is_entry && !(*marks & (CODE_MARK_CALLED | CODE_MARK_WHOLE));
    w->is_lasting &= is_entry;
    const struct code_value *sp = &run->state.reg[f->arch->sp_reg];
    if (is_part && w->phase == CODE_PHASE_JUDGE && sp->kind == CODE_VALUE_ENTRY) {
        *marks |= CODE_MARK_FRAGMENT;
        code_scan(w, target);
        w->again = true;
        return;
    }
    if (w->phase == CODE_PHASE_JUDGE && is_entry) {
        note_left(w, &run->state, target, false);
    }
    if (is_entry && code_stub_ends(f, target)) { // as a call of it, but that it proves where the stack is
        if (w->phase == CODE_PHASE_JUDGE)
            code_part_returns(w, run);
        return;
    }
    end_elsewhere(w, run, pc);
}

// What the comparison says where it is taken matters to states alone.
static void branch(struct code_walk *w, const struct code_run *run, const struct code_instruction *in, uint32_t pc)
{
    if (w->phase != CODE_PHASE_STATES) {
        go_to(w, run, in->target, pc);
        return;
    }
    struct code_run taken;
    code_run_begin(&taken, run->from);
    taken.guess = run->guess;
    code_state_copy(&taken.state, &run->state);
    code_state_branch(&taken.state, in->when, true);
    go_to(w, &taken, in->target, pc);
}

static void go_through(struct code_walk *w, const struct code_run *run, const struct code_instruction *in, uint32_t pc)
{
    const struct code_value *to = &run->state.reg[in->through];
    if (to->kind == CODE_VALUE_CONST) {
        uint32_t target;
        uint64_t vaddr = code_address(w, (uint64_t)to->number, in->target_mode, &target);
        if (code_is_in_text(w->f, vaddr)) {
            if (!code_is_other(w, target) && !(w->f->marks[target] & CODE_MARK_LEADER)) // as if the jump said it
                w->again |= code_scan(w, target);
            if (!w->again)
                go_to(w, run, vaddr, pc);
            return;
        }
    }
    if (to->kind == CODE_VALUE_LOADED || to->kind == CODE_VALUE_TARGET) {
        if (code_go_through_table(w, run, to, pc, in->target_mode))
            return;
    }
    const struct code_value *sp = &run->state.reg[w->f->arch->sp_reg];
    if (w->phase != CODE_PHASE_JUDGE || code_is_entry(&w->machine, &run->state) || sp->kind != CODE_VALUE_ENTRY) {
        end_elsewhere(w, run, pc);
        return;
    }
    // Where it goes to in this function, and with what, is not known: what is said of its joins may be wrong.
    w->walked->is_open = true;
    code_give_up(w, CODE_OPEN_JUMP, pc);
}

// An address that an instruction leaves in a register.
static void note_constant(struct code_walk *w, const struct code_run *run, const struct code_op *op)
{
    const struct code_value *value = &run->state.reg[op->to < CODE_REGISTERS ? op->to : CODE_REG_SCRATCH];
    if ((op->kind == CODE_OP_SET || op->kind == CODE_OP_ADD) && value->kind == CODE_VALUE_CONST)
        code_note_pointed(w->f, (uint64_t)value->number);
}

static bool is_end_behind_call(const struct code_walk *w, const struct code_run *run, uint32_t pc)
{
    unsigned marks = w->f->marks[pc];
    if (run->padding == CODE_PADS_NOTHING)
        return false;
    if (marks & CODE_MARK_START)
        return run->is_behind_call || !code_is_entry(&w->machine, &run->state);
    return run->padding == CODE_PADS_DOUBT && !(marks & CODE_MARK_LEADER) && code_is_pointed(w->f, pc);
}

void code_run_block(struct code_walk *w, uint32_t leader)
{
    struct code_follower *f = w->f;
    struct code_run run;
    code_run_begin(&run, leader);
    code_state_copy(&run.state, &w->leaders.items[leader].state);
    run.state.version = ++w->machine.versions;
    run.guess = w->leaders.items[leader].guess;
    if (w->phase >= CODE_PHASE_JUDGE)
        code_part_enter(w, &run);
    unsigned conditional = 0;
    for (uint32_t pc = w->leaders.items[leader].pc; !w->no_memory && !w->again;) {
        struct code_instruction in;
        if (!code_read(f, pc, &in) || in.flow == CODE_UNKNOWN) {
            contradict(w, &run, CODE_BAD_INSTRUCTION, pc);
            return;
        }
        if (w->phase == CODE_PHASE_PUBLISH || (w->phase == CODE_PHASE_JUDGE && w->is_told))
            code_tell(w, &run, pc, &in);
        w->walked->instructions += w->phase == CODE_PHASE_JUDGE;
        in.conditional |= conditional > 0;
        conditional = in.conditional_next ? in.conditional_next : conditional - (conditional > 0);
        struct code_state before;
        if (in.conditional)
            code_state_copy(&before, &run.state);
        struct code_value number = run.state.reg[f->code->call_number_reg];
        struct code_value sp = run.state.reg[f->arch->sp_reg];
        code_state_apply(&w->machine, &run.state, &in, pc);
        if (w->phase == CODE_PHASE_JUDGE)
            code_part_moves_sp(w, &run, &sp);
        if (w->phase == CODE_PHASE_JUDGE && in.op_count && !f->visit)
            note_constant(w, &run, &in.ops[in.op_count - 1]);
        bool goes_on = true;
        run.is_behind_call = run.is_doubtful = false;
        switch (in.flow) {
        case CODE_CALL:
            code_note_main(w, &run.state);
            goes_on = code_call(w, &run, &in, pc);
            run.is_behind_call = true;
            break;
        case CODE_SYSTEM: goes_on = code_system_call(w, &run, &number, pc); break;
        case CODE_BRANCH:
            branch(w, &run, &in, pc);
            code_state_branch(&run.state, in.when, false);
            break;
        case CODE_JUMP:
            if (in.through == CODE_REG_NONE)
                go_to(w, &run, in.target, pc);
            else
                go_through(w, &run, &in, pc);
            goes_on = false;
            break;
        case CODE_RETURN:
            end_by_return(w, &run, &in, pc);
            goes_on = false;
            break;
        case CODE_STOP: goes_on = false; break;
        default: break;
        }
        if (!goes_on && w->phase == CODE_PHASE_JUDGE &&
            (in.flow == CODE_CALL || in.flow == CODE_SYSTEM || in.flow == CODE_STOP))
            code_part_stops(w, &run);
        if (in.conditional) { // or it did not happen
            if (goes_on)
                code_state_merge(&run.state, &before, f->arch->sp_reg, pc);
            else
                code_state_copy(&run.state, &before);
            run.state.version = ++w->machine.versions;
            goes_on = true;
            run.is_doubtful = false;
        }
        if (!goes_on)
            return;
        pc += in.size_bytes;
        if (pc >= f->text_size) {
            contradict(w, &run, CODE_BAD_INSTRUCTION, pc);
            return;
        }
        if (!in.is_padding || in.flow != CODE_NEXT)
            run.padding = run.is_doubtful ? CODE_PADS_DOUBT : run.is_behind_call ? CODE_PADS_CALL : CODE_PADS_NOTHING;
        // Where a function begins, or a part of one, no code before it goes on after a call. What something has the
        // address of may be a label; but nothing says that the way to it goes on.
        if (pc != w->start && is_end_behind_call(w, &run, pc)) {
            w->walked->is_cut_in_doubt |= run.padding == CODE_PADS_DOUBT;
            if (w->phase == CODE_PHASE_JUDGE)
                code_part_stops(w, &run);
            return;
        }
        if (run.is_doubtful && w->phase >= CODE_PHASE_JUDGE)
            code_part_behind_call(w, &run, code_callee_of(f, &in));
        if (f->marks[pc] & CODE_MARK_LEADER) {
            code_deliver(w, &run, pc);
            return;
        }
        if (!(f->marks[pc] & CODE_MARK_INSTRUCTION)) { // another function
            if (w->phase == CODE_PHASE_JUDGE && code_is_entry(&w->machine, &run.state))
                note_left(w, &run.state, pc, true);
            end_elsewhere(w, &run, pc);
            return;
        }
    }
}
