// SPDX-License-Identifier: Apache-2.0
// One function, over all its ways. First which instructions it has (scan.c). Then states, from its entry on, until no
// place where ways meet changes any more. Then each instruction once more, with the states that hold: its rule, and
// whether each way ends as one must. A call that contradicts what is behind it does not come back; without it the walk
// begins anew.
#include "qutc/code/inside.h"
#include "qutc/code/value.h"

// Where ways meet with the stack at different places, one that comes out of a call, alone against all others, does not
// come back.
static void judge_joins(struct code_walk *w)
{
    for (size_t i = 0; i < w->edges.count && !w->again; i++) {
        const struct code_edge *edge = &w->edges.items[i];
        if (!edge->is_behind_call || edge->sp.kind != CODE_VALUE_ENTRY)
            continue;
        const struct code_edge *other = NULL;
        bool alone = true;
        for (uint32_t k = w->leaders.items[edge->to].first_edge; k && alone; k = w->edges.items[k - 1].next) {
            const struct code_edge *e = &w->edges.items[k - 1];
            if (k - 1 == i)
                continue;
            alone = !code_value_same(&e->sp, &edge->sp) && (!other || code_value_same(&e->sp, &other->sp));
            other = e;
        }
        if (other && alone)
            code_leave_out_call(w, edge->call);
    }
}

static void run_all(struct code_walk *w, enum code_phase phase)
{
    w->phase = phase;
    for (size_t i = 0; i < w->leaders.count && !w->again && !w->needs_edges && !w->no_memory; i++)
        if (w->leaders.items[i].has_state && w->walked->outcome == CODE_FOLLOWED)
            code_run_block(w, (uint32_t)i);
}

// What was told of this walk.
static void forget(struct code_walk *w)
{
    w->spans.count = 0;
    w->span_version = 0;
    w->f->data.count = w->first_data;
    if (w->f->forget)
        w->f->forget(w->f->context);
}

static void judge(struct code_walk *w)
{
    w->left_for.count = w->assumed.count = 0;
    code_parts_begin(w);
    forget(w);
    run_all(w, CODE_PHASE_JUDGE);
}

static void find_edges(struct code_walk *w)
{
    w->needs_edges = false;
    w->has_edges = true;
    run_all(w, CODE_PHASE_EDGES);
}

static void walk_once(struct code_walk *w)
{
    w->again = w->sp_differs = w->has_edges = w->needs_edges = false;
    w->phase = CODE_PHASE_STATES;
    w->leaders.count = w->queue.count = w->edges.count = 0;
    w->machine.tables.count = 0;
    memset(w->machine.restored, 0, sizeof w->machine.restored);
    base_hash_clear(&w->leader_index);
    *w->walked = (struct code_walked){0};
    code_scan(w, w->start);
    if (w->jumps.count)
        code_scan_tables(w);
    if (w->instruction_count >= CODE_INSTRUCTIONS_MAX)
        code_give_up(w, CODE_TOO_LARGE, w->start);
    struct code_run entry;
    code_run_begin(&entry, 0);
    code_state_enter(&w->machine, &entry.state);
    if (w->is_outermost) { // no return address
        entry.state.slot_count = 0;
        entry.state.reg[w->f->arch->ra_reg] = (struct code_value){.kind = CODE_VALUE_UNKNOWN, .number = -1};
    }
    for (unsigned i = 0; i < w->f->arch->register_count; i++)
        if (w->without >> i & 1)
            entry.state.reg[i] = code_value_unknown(w->start, i);
    code_deliver(w, &entry, w->start);
    for (size_t i = 0; i < w->queue.count && !w->again && !w->no_memory && w->walked->outcome == CODE_FOLLOWED; i++) {
        uint32_t leader = w->queue.items[i];
        w->leaders.items[leader].is_queued = false;
        code_run_block(w, leader);
    }
    // Where all ways met with the stack at one place, joins have nothing to say.
    if (w->sp_differs) {
        find_edges(w);
        judge_joins(w);
    }
    judge(w);
    if (w->needs_edges) {
        find_edges(w);
        *w->walked = (struct code_walked){0};
        judge(w);
    }
}

void code_tell(struct code_walk *w, const struct code_run *run, uint32_t pc, const struct code_instruction *in)
{
    const struct code_state *state = &run->state;
    bool is_reached = w->phase == CODE_PHASE_JUDGE || code_part_is_reached(w, run);
    w->walked->doubtful += !is_reached;
    if (w->f->visit) {
        w->f->visit(w->f->context, pc, in, &w->machine, is_reached ? state : NULL);
        return;
    }
    if (!is_reached) {
        w->f->marks[pc] |= CODE_MARK_LEFT_OUT;
        return;
    }
    code_note_literals(w, in);
    uint32_t end = pc + in->size_bytes;
    struct qut_rule rule;
    uint32_t rule_id = CFI_RULE_HOLE_ID;
    if (w->f->made)
        w->f->made(w->f->context, pc, in, &w->machine, state);
    if (state->version == w->span_version) {
        rule_id = w->span_rule_id;
    } else if (w->is_outermost) {
        rule_id = cfi_rule_set_intern(w->f->rules, &w->outermost);
    } else if (code_rule_of(&w->machine, state, &rule)) {
        rule.origin = QUT_RULE_FROM_CODE;
        rule_id = cfi_rule_set_intern(w->f->rules, &rule);
    }
    w->span_version = state->version;
    w->span_rule_id = rule_id;
    struct code_span *last = w->spans.count ? &w->spans.items[w->spans.count - 1] : NULL;
    if (last && last->end == pc && last->rule_id == rule_id) {
        last->end = end;
        return;
    }
    struct code_span *span = BASE_ADD(&w->spans);
    if (!span || rule_id == CFI_RULE_NO_MEMORY)
        w->no_memory = true;
    else
        *span = (struct code_span){.pc = pc, .end = end, .rule_id = rule_id};
}

// Whether what its caller left on the stack is what we say: a return that fits proves it, or a call.
static bool is_proven(struct code_walk *w, const struct code_function *function, const struct code_walked *walked)
{
    if (w->is_outermost || walked->returns || function->found & (CODE_FOUND_CALL | CODE_FOUND_STATED))
        return true;
    // What it goes on in expects what it was itself called with.
    for (size_t i = 0; i < w->left_for.count; i++) {
        const struct code_function *next = code_function_at(w->f, w->left_for.items[i].pc);
        if ((next && (next->is_followed || next->found & CODE_FOUND_STATED)) ||
            code_learned_at(w->f, w->left_for.items[i].pc))
            return true;
    }
    return false;
}

// It goes on in a function that is known to come back, with the caller's stack: so to the caller.
static bool comes_back_elsewhere(struct code_walk *w)
{
    bool found = false;
    for (size_t i = 0; i < w->left_for.count && !found; i++) {
        const struct code_function *next = code_function_at(w->f, w->left_for.items[i].pc);
        const struct code_learned *learned = next ? NULL : code_learned_at(w->f, w->left_for.items[i].pc);
        found = next ? next->comes_back : learned && learned->comes_back;
    }
    return found;
}

static int publish(struct code_walk *w, struct code_function *function)
{
    struct code_follower *f = w->f;
    function->is_followed = w->walked->outcome == CODE_FOLLOWED;
    if (!function->is_followed)
        return 0;
    function->loses = w->walked->loses;
    // What a function does that this one goes on in, or behind another stack, is not known.
    bool is_whole = w->walked->returns && !w->walked->leaves && !w->walked->is_open && !w->walked->is_elsewhere;
    function->keeps = is_whole ? ~(w->walked->changes | f->code->kept | (uint64_t)1 << f->arch->ra_reg) : 0;
    function->comes_back |= w->walked->returns || comes_back_elsewhere(w);
    code_parts_learn(w);
    // A return with another stack than is known here may be to the caller; so may be what is behind a call that was
    // blamed for what is not understood: callers would be cut off there.
    function->never_returns =
        !w->walked->returns && !w->walked->leaves && !w->walked->is_elsewhere && !w->walked->is_blaming;
    for (size_t i = 0; i < w->left_for.count; i++) {
        const struct code_left *left = &w->left_for.items[i];
        uint32_t pc = left->pc;
        struct code_function *next = code_function_at(f, pc);
        if (next)
            next->without |= left->lost;
        if (left->is_behind)
            continue;
        if (!next && w->is_unwanted && !f->visit && !(f->marks[pc] & CODE_MARK_CALLED))
            code_note_called(w, pc, f->marks[pc] & CODE_MARK_MODE ? 1 : 0);
        if (!next || next->found & CODE_FOUND_CALL)
            continue;
        next->found |= CODE_FOUND_CALL;
        next->is_seen &= !code_is_open_yet(next);
        f->is_open |= next->is_done && !next->is_followed;
        next->is_done &= next->is_followed;
    }
    if (!f->is_final || f->visit)
        return 0;
    code_note_tables(w);
    if (!BASE_RESERVE(&f->spans, w->spans.count))
        return -1;
    if (w->spans.count)
        memcpy(&f->spans.items[f->spans.count], w->spans.items, w->spans.count * sizeof *w->spans.items);
    f->spans.count += w->spans.count;
    return 0;
}

static void begin(struct code_walk *w, const struct code_function *function, struct code_walked *walked)
{
    const struct code_follower *f = w->f;
    w->walked = walked;
    w->start = function->pc;
    w->is_entered = function->found & CODE_FOUND_ENTRY;
    w->is_outermost = function->found & CODE_FOUND_ENTRY && !(function->found & (CODE_FOUND_CALL | CODE_FOUND_STATED));
    w->outermost =
        (struct qut_rule){.kind = QUT_RULE_FRAME, .dex_pc_reg = QUT_NO_REGISTER, .origin = QUT_RULE_FROM_CODE};
    w->outermost.cfa = (struct qut_cfa){.reg = f->arch->sp_reg, .offset_bytes = f->arch->word_bytes};
    w->outermost.ra.how = QUT_REG_UNDEFINED;
    w->extent_end = code_next_start(f, function->pc);
    w->instruction_count = 0;
    w->end = function->end;
    w->without = f->visit ? 0 : function->without;
    w->has_return = w->has_way_out = w->goes_on_in_wanted = false;
    w->is_unwanted = f->is_wanted && !f->is_wanted(f->wanted_context, function->pc);
    w->no_memory = w->machine.no_memory = false;
    w->is_lasting = !f->arch->has_thumb; // of what symbols do not name the mode may turn out later
    w->machine.versions = 0;
    w->machine.overwritten = w->machine.stored = 0;
    w->machine.raised = w->machine.lowered = w->machine.written = 0;
    w->touched.count = w->left_for.count = w->parts.count = w->ways.count = 0;
    if (w->jumps.count)
        base_hash_clear(&w->jump_index);
    w->jumps.count = w->targets.count = w->no_elements.count = 0;
    w->guessed_by = UINT32_MAX;
    w->is_anew = w->has_doubt = false;
    w->has_end = function->end != 0;
    w->first_called = f->called.count;
    w->first_data = f->data.count;
    w->is_told = f->visit || f->is_final;
    if (f->decoded)
        f->decoded->next = 0;
}

static void take_marks_back(struct code_walk *w)
{
    for (size_t i = 0; i < w->touched.count; i++)
        w->f->marks[w->touched.items[i]] &= (uint16_t)~CODE_MARK_WALK;
}

// What was found by an element that is none is not there.
static void begin_anew(struct code_walk *w)
{
    take_marks_back(w);
    code_forget_calls(w->f, w->first_called);
    w->touched.count = w->instruction_count = 0;
    w->is_anew = false;
}

int code_find_calls(struct code_follower *f, struct code_function *function)
{
    struct code_walked walked;
    begin(f->walk, function, &walked);
    code_scan(f->walk, function->pc);
    take_marks_back(f->walk);
    // Of what is described nothing else is asked; a frame program ends behind a call that does not come back.
    bool is_described = function->found & CODE_FOUND_STATED && function->end;
    function->comes_back |= is_described && f->walk->has_return;
    function->never_returns |= is_described && !f->walk->has_return && !f->walk->has_way_out;
    // Whether that is called so only its own states tell.
    if (f->walk->goes_on_in_wanted && !f->walk->no_memory)
        return code_follow(f, function, &walked);
    return f->walk->no_memory ? base_fail(f->error, BASE_ERR_NO_MEMORY, "", 0, "functions of machine code") : 0;
}

// Registers that hold what they held at the entry nowhere any more, once that is known of no register and no word.
static uint64_t overwritten(const struct code_walk *w)
{
    const struct code_machine *machine = &w->machine;
    // What only rises, or only falls, does not come back.
    uint64_t moved = (machine->raised ^ machine->lowered) & ~machine->written;
    // Through a table the walk may have come to another function's code: compilers leave bounds out.
    return w->jumps.count ? 0 : (machine->overwritten | moved) & ~machine->stored;
}

int code_follow(struct code_follower *f, struct code_function *function, struct code_walked *walked)
{
    struct code_walk *w = f->walk;
    uint32_t pc = function->pc;
    begin(w, function, walked);
    bool is_guess = function->found == CODE_FOUND_GAP, is_over = false;
    unsigned walks = 0;
    uint64_t scanned = 0;
    do {
        if (w->is_anew)
            begin_anew(w);
        walk_once(w);
        scanned += w->instruction_count;
        is_over = ++walks >= CODE_WALKS_MAX &&
                  (is_guess || walks >= CODE_SHORT_WALKS_MAX || scanned >= CODE_SHORT_WALKS_INSTRUCTIONS);
    } while (w->again && !w->no_memory && !is_over);
    if (w->again)
        code_give_up(w, CODE_TOO_LARGE, pc);
    walked->scanned = scanned;
    walked->overwrites = overwritten(w);
    if (walked->outcome == CODE_FOLLOWED && !is_proven(w, function, walked))
        code_give_up(w, CODE_UNPROVEN, pc);
    if (walked->outcome != CODE_FOLLOWED)
        f->data.count = w->first_data;
    else if (!code_parts_judge(w)) { // what is to be told is known only now
        w->is_lasting = false;
        forget(w);
        if (w->is_told)
            run_all(w, CODE_PHASE_PUBLISH);
    }
    int kept = f->visit && !f->is_final ? code_keep(w, function) : 0;
    take_marks_back(w);
    if (w->no_memory || w->machine.no_memory || kept != 0 || publish(w, function) != 0)
        return base_fail(f->error, BASE_ERR_NO_MEMORY, "", 0, "functions of machine code");
    return 0;
}
