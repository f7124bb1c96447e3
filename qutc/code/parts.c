// SPDX-License-Identifier: Apache-2.0
// What stands behind a call belongs to the function only if the call comes back. A compiler that knows of one that does
// not lets the next function begin right behind it; where nothing names that one, and nothing that it meets contradicts
// (it does not return either), the walk goes on in it with a stack that it never has. Seen in aarch64's static busybox.
//
// So blocks are taken apart at calls of which nothing says that they come back. What stands behind such a call gets
// rules only if
// - a return or a tail call that fits is reached from there: another function's would find this one's frame in its way;
// or
// - it goes on in what is reached without that call, the stack being the same; or
// - it ends in a trap or a call that is known not to come back, before it makes room on the stack: functions begin with
// that. A callee says so itself where it is followed and returns, or where another call of it is shown to come back.
#include "qutc/code/inside.h"

enum code_part_end { // of what is reached from a part
    PART_RETURNS = 1,
    PART_STOPS = 2, // ... before sp is lowered
    PART_JOINS = 4, // what is reached without it
};

static struct code_part *part_of(struct code_walk *w, const struct code_run *run)
{
    return run->part < w->parts.count ? &w->parts.items[run->part] : NULL;
}

static void add_part(struct code_walk *w, struct code_run *run, bool is_behind_call, uint32_t callee)
{
    struct code_part *part = BASE_ADD(&w->parts);
    if (!part) {
        w->no_memory = true;
        return;
    }
    *part =
        (struct code_part){.callee = callee, .is_behind_call = is_behind_call, .first_way = (uint32_t)w->ways.count};
    run->part = (uint32_t)w->parts.count - 1;
    w->has_doubt |= is_behind_call;
}

void code_parts_begin(struct code_walk *w)
{
    w->parts.count = w->ways.count = 0;
    w->has_doubt = false;
    for (size_t i = 0; i < w->leaders.count; i++)
        w->leaders.items[i].part = UINT32_MAX;
}

void code_part_enter(struct code_walk *w, struct code_run *run)
{
    if (w->phase == CODE_PHASE_JUDGE) {
        add_part(w, run, false, UINT32_MAX);
        w->leaders.items[run->from].part = run->part;
    } else {
        run->part = w->leaders.items[run->from].part;
    }
}

void code_part_behind_call(struct code_walk *w, struct code_run *run, uint32_t callee)
{
    if (w->phase == CODE_PHASE_JUDGE)
        add_part(w, run, true, callee);
    else if (w->phase == CODE_PHASE_PUBLISH)
        run->part++; // in the order in which they were judged
}

void code_part_goes_to(struct code_walk *w, const struct code_run *run, uint32_t leader)
{
    const struct code_part *part = part_of(w, run);
    struct code_way *way = part ? BASE_ADD(&w->ways) : NULL;
    if (way)
        *way = (struct code_way){.from = run->part, .to = leader, .is_lowered = part->is_lowered};
    else
        w->no_memory |= part != NULL;
}

void code_part_returns(struct code_walk *w, const struct code_run *run)
{
    struct code_part *part = part_of(w, run);
    if (part)
        part->ends |= PART_RETURNS;
}

void code_part_stops(struct code_walk *w, const struct code_run *run)
{
    struct code_part *part = part_of(w, run);
    if (part && !part->is_lowered)
        part->ends |= PART_STOPS;
}

void code_part_moves_sp(struct code_walk *w, const struct code_run *run, const struct code_value *before)
{
    const struct code_value *sp = &run->state.reg[w->f->arch->sp_reg];
    struct code_part *part = part_of(w, run);
    if (!part || code_value_same(sp, before))
        return;
    bool is_comparable = sp->kind == before->kind && sp->of == before->of;
    part->is_lowered |= is_comparable ? sp->number < before->number : sp->kind != CODE_VALUE_ENTRY;
}

bool code_part_is_reached(const struct code_walk *w, const struct code_run *run)
{
    return !w->has_doubt || (run->part < w->parts.count && w->parts.items[run->part].is_reached);
}

// ---- what is reached

static void push(struct code_walk *w, uint32_t part)
{
    uint32_t *place = BASE_ADD(&w->queue);
    if (place)
        *place = part;
    w->no_memory |= !place;
}

// Gives a part more ends, which those that lead to it have to learn.
static void add_ends(struct code_walk *w, uint32_t part, unsigned ends)
{
    unsigned more = ends & ~(unsigned)w->parts.items[part].ends;
    if (!more)
        return;
    w->parts.items[part].ends = (uint8_t)(w->parts.items[part].ends | more);
    push(w, part);
}

static unsigned seen_from(unsigned ends, bool is_lowered)
{
    return is_lowered ? ends & (unsigned)~PART_STOPS : ends;
}

// What a part's ends are for those that it is reached from.
static void spread_back(struct code_walk *w)
{
    while (w->queue.count && !w->no_memory) {
        uint32_t at = w->queue.items[--w->queue.count];
        const struct code_part part = w->parts.items[at];
        if (part.is_behind_call)
            add_ends(w, at - 1, seen_from(part.ends, w->parts.items[at - 1].is_lowered));
        for (uint32_t i = part.first_to; i && !w->no_memory; i = w->ways.items[i - 1].next) {
            const struct code_way *way = &w->ways.items[i - 1];
            add_ends(w, way->from, seen_from(part.ends, way->is_lowered));
        }
    }
}

// Ways are linked by where they lead to; as they stand they are in the order of where they come from.
static void link_ways(struct code_walk *w)
{
    for (size_t i = 0; i < w->ways.count; i++) {
        struct code_way *way = &w->ways.items[i];
        const struct code_leader *leader = &w->leaders.items[way->to];
        way->is_same_sp = leader->state.reg[w->f->arch->sp_reg].kind == CODE_VALUE_ENTRY;
        way->to = leader->part;
        if (way->to == UINT32_MAX)
            continue;
        way->next = w->parts.items[way->to].first_to;
        w->parts.items[way->to].first_to = (uint32_t)i + 1;
    }
}

static void reach(struct code_walk *w, uint32_t part)
{
    if (part == UINT32_MAX || w->parts.items[part].is_reached)
        return;
    w->parts.items[part].is_reached = true;
    push(w, part);
}

static void spread_on(struct code_walk *w)
{
    while (w->queue.count && !w->no_memory) {
        uint32_t at = w->queue.items[--w->queue.count];
        size_t end = at + 1 < w->parts.count ? w->parts.items[at + 1].first_way : w->ways.count;
        for (size_t i = w->parts.items[at].first_way; i < end; i++)
            reach(w, w->ways.items[i].to);
        if (at + 1 < w->parts.count && w->parts.items[at + 1].is_behind_call && w->parts.items[at + 1].ends)
            reach(w, at + 1);
    }
}

// True where a call came back by that.
static bool find_joins(struct code_walk *w)
{
    for (size_t i = 0; i < w->ways.count && !w->no_memory; i++) {
        const struct code_way *way = &w->ways.items[i];
        if (way->is_same_sp && way->to != UINT32_MAX && w->parts.items[way->to].is_reached &&
            !w->parts.items[way->from].is_reached)
            add_ends(w, way->from, PART_JOINS);
    }
    bool found = w->queue.count > 0;
    spread_back(w);
    for (uint32_t i = 1; i < w->parts.count && found && !w->no_memory; i++)
        if (w->parts.items[i].is_behind_call && w->parts.items[i].ends && w->parts.items[i - 1].is_reached)
            reach(w, i);
    return w->queue.count > 0;
}

bool code_parts_judge(struct code_walk *w)
{
    enum { ROUNDS_MAX = 32 }; // what they do not reach stays without rules
    if (!w->has_doubt || w->no_memory)
        return true;
    w->queue.count = 0;
    link_ways(w);
    for (uint32_t i = 0; i < w->parts.count; i++)
        if (w->parts.items[i].ends)
            push(w, i);
    spread_back(w);
    reach(w, w->leaders.items[0].part);
    spread_on(w);
    for (unsigned round = 0; round < ROUNDS_MAX && !w->no_memory && find_joins(w); round++)
        spread_on(w);
    w->queue.count = 0;
    bool all = true;
    for (size_t i = 0; i < w->parts.count && all; i++)
        all = w->parts.items[i].is_reached;
    return all;
}

void code_parts_learn(struct code_walk *w)
{
    for (size_t i = 0; i < w->parts.count && w->has_doubt; i++) {
        const struct code_part *part = &w->parts.items[i];
        if (!part->is_behind_call || !part->is_reached || !(part->ends & PART_RETURNS) || part->callee == UINT32_MAX)
            continue;
        struct code_function *callee = code_function_at(w->f, part->callee);
        if (callee)
            callee->comes_back = true;
    }
}
