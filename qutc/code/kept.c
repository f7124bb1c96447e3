// SPDX-License-Identifier: Apache-2.0
// Most functions are walked once: what their walk took the functions for that they call turns out to be so.
#include "qutc/code/inside.h"

struct code_assumption code_taken_for(const struct code_follower *f, uint32_t callee)
{
    const struct code_function *function = code_function_at((struct code_follower *)(uintptr_t)f, callee);
    const struct code_learned *learned = f->visit ? NULL : code_learned_at(f, callee);
    struct code_assumption taken = {.callee = callee};
    if (function) {
        taken.never_returns = function->never_returns;
        taken.loses = function->loses;
        taken.keeps = f->visit ? 0 : function->keeps;
    } else if (learned) {
        taken.loses = learned->loses;
    }
    // Of what was followed with what stands behind it, before another function was known to begin there, more is known.
    if (learned)
        taken.keeps |= learned->keeps;
    return taken;
}

bool code_assume(struct code_walk *w, const struct code_assumption *taken)
{
    struct code_assumption *place = BASE_ADD(&w->assumed);
    if (!place) {
        w->no_memory = true;
        return false;
    }
    *place = *taken;
    return true;
}

bool code_still_holds(const struct code_follower *f, const struct code_assumption *all, size_t first, size_t count)
{
    for (size_t i = first; i < first + count; i++) {
        const struct code_assumption now = code_taken_for(f, all[i].callee);
        if (all[i].never_returns != now.never_returns || all[i].loses != now.loses || all[i].keeps & ~now.keeps)
            return false;
    }
    return true;
}

bool code_is_safe(const struct code_follower *f, const struct code_assumption *all, size_t first, size_t count)
{
    for (size_t i = first; i < first + count; i++) {
        const struct code_assumption now = code_taken_for(f, all[i].callee);
        if (now.loses & ~all[i].loses || all[i].keeps & ~now.keeps)
            return false;
    }
    return true;
}

int code_keep(struct code_walk *w, struct code_function *function)
{
    struct code_follower *f = w->f;
    function->kept = 0;
    // What is not followed may be so when more is known.
    if (w->walked->outcome != CODE_FOLLOWED || !w->is_lasting || f->kept.count >= UINT32_MAX - 1)
        return 0;
    struct code_kept *kept = BASE_ADD(&f->kept);
    if (!kept || !BASE_RESERVE(&f->assumed, w->assumed.count))
        return -1;
    *kept = (struct code_kept){
        .walked = *w->walked, .low = UINT32_MAX, .first = f->assumed.count, .count = w->assumed.count};
    if (w->assumed.count)
        memcpy(&f->assumed.items[f->assumed.count], w->assumed.items, w->assumed.count * sizeof *w->assumed.items);
    f->assumed.count += w->assumed.count;
    for (size_t i = 0; i < w->touched.count; i++) {
        uint32_t pc = w->touched.items[i];
        f->marks[pc] |= CODE_MARK_KEPT;
        kept->low = pc < kept->low ? pc : kept->low;
        kept->high = pc > kept->high ? pc : kept->high;
    }
    function->kept = (uint32_t)f->kept.count;
    return f->keep(f->context, function, w->walked) ? 0 : -1;
}

const struct code_walked *code_kept(const struct code_follower *f, const struct code_function *function)
{
    if (!function->kept)
        return NULL;
    const struct code_kept *kept = &f->kept.items[function->kept - 1];
    for (size_t i = 0; i < f->disturbed.count; i++)
        if (f->disturbed.items[i] >= kept->low && f->disturbed.items[i] <= kept->high)
            return NULL;
    if (!code_still_holds(f, f->assumed.items, kept->first, kept->count))
        return NULL;
    return &kept->walked;
}
