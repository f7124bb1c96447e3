// SPDX-License-Identifier: Apache-2.0
// One function, over all its ways. First which instructions it has (scan.c). Then states, from its entry on, until no
// place where ways meet changes any more. Then each instruction once more, with the states that hold: its rule, and
// whether each way ends as one must. A call that contradicts what is behind it does not come back; without it the walk
// begins anew.
#include "qutc/code/inside.h"

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
        for (size_t k = 0; k < w->edges.count && alone; k++) {
            const struct code_edge *e = &w->edges.items[k];
            if (e->to != edge->to || k == i)
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
    for (size_t i = 0; i < w->leaders.count && !w->again && !w->no_memory; i++)
        if (w->leaders.items[i].has_state && w->walked->outcome == CODE_FOLLOWED)
            code_run_block(w, (uint32_t)i);
}

static void walk_once(struct code_walk *w)
{
    w->again = false;
    w->phase = CODE_PHASE_STATES;
    w->leaders.count = w->queue.count = w->edges.count = w->spans.count = 0;
    w->machine.tables.count = 0;
    memset(w->machine.restored, 0, sizeof w->machine.restored);
    base_hash_clear(&w->leader_index);
    *w->walked = (struct code_walked){0};
    code_scan(w, w->start);
    if (w->instruction_count >= CODE_INSTRUCTIONS_MAX)
        code_give_up(w, CODE_TOO_LARGE, w->start);
    struct code_run entry = {0};
    code_state_enter(&w->machine, &entry.state);
    code_deliver(w, &entry, w->start);
    for (size_t i = 0; i < w->queue.count && !w->again && !w->no_memory && w->walked->outcome == CODE_FOLLOWED; i++) {
        uint32_t leader = w->queue.items[i];
        w->leaders.items[leader].is_queued = false;
        code_run_block(w, leader);
    }
    run_all(w, CODE_PHASE_EDGES);
    judge_joins(w);
    run_all(w, CODE_PHASE_JUDGE);
}

// Whether what its caller left on the stack is what we say: a return that fits proves it, or a call.
static bool is_proven(const struct code_function *function, const struct code_walked *walked)
{
    return walked->returns || function->found & (CODE_FOUND_CALL | CODE_FOUND_STATED);
}

static int publish(struct code_walk *w, struct code_function *function)
{
    struct code_follower *f = w->f;
    function->is_followed = w->walked->outcome == CODE_FOLLOWED;
    if (!function->is_followed)
        return 0;
    function->loses = w->walked->loses;
    function->never_returns = !w->walked->returns && !w->walked->leaves;
    for (size_t i = 0; i < w->left_for.count; i++) {
        struct code_function *next = code_function_at(f, w->left_for.items[i]);
        if (next)
            next->found |= CODE_FOUND_CALL;
    }
    if (!f->is_final)
        return 0;
    if (!BASE_RESERVE(&f->spans, w->spans.count))
        return -1;
    if (w->spans.count)
        memcpy(&f->spans.items[f->spans.count], w->spans.items, w->spans.count * sizeof *w->spans.items);
    f->spans.count += w->spans.count;
    return 0;
}

int code_follow(struct code_follower *f, struct code_function *function, struct code_walked *walked)
{
    struct code_walk *w = f->walk;
    uint32_t pc = function->pc;
    w->walked = walked;
    w->start = pc;
    w->extent_end = function + 1 < f->functions.items + f->functions.count ? function[1].pc : f->text_size;
    w->instruction_count = 0;
    w->touched.count = w->targets.count = w->left_for.count = 0;
    unsigned walks = 0;
    do {
        w->left_for.count = 0;
        walk_once(w);
    } while (w->again && !w->no_memory && ++walks < CODE_WALKS_MAX);
    if (w->again)
        code_give_up(w, CODE_TOO_LARGE, pc);
    if (walked->outcome == CODE_FOLLOWED && !is_proven(function, walked))
        code_give_up(w, CODE_UNPROVEN, pc);
    if (f->is_final)
        run_all(w, CODE_PHASE_PUBLISH);
    for (size_t i = 0; i < w->touched.count; i++)
        f->marks[w->touched.items[i]] &= (uint16_t)~CODE_MARK_WALK;
    if (w->no_memory || w->machine.no_memory || publish(w, function) != 0)
        return base_fail(f->error, BASE_ERR_NO_MEMORY, "", 0, "functions of machine code");
    return 0;
}
