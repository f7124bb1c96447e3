// SPDX-License-Identifier: Apache-2.0
#include "qutc/code/settle.h"

// A register that is lost three calls down is known to be so in the third round at most, whatever the order of
// addresses.
enum { ROUNDS_MAX = 8 };

static int no_memory(struct code_settling *settling)
{
    return base_fail(settling->f->error, BASE_ERR_NO_MEMORY, "", 0, "functions of machine code");
}

int code_settle_later(struct code_settling *settling, const struct code_function *function, size_t first_span,
                      const struct code_walked *walked)
{
    struct code_follower *f = settling->f;
    const struct code_walk *w = f->walk;
    bool is_gap = function->found == CODE_FOUND_GAP;
    if (!is_gap && !w->assumed.count)
        return 0;
    struct code_unsettled *place = BASE_ADD(&settling->functions);
    if (!place || !BASE_RESERVE(&settling->assumed, w->assumed.count))
        return no_memory(settling);
    // Of what is called or named all callees were looked for before.
    *place = (struct code_unsettled){.pc = function->pc,
                                     .first_assumed = settling->assumed.count,
                                     .assumed_count = w->assumed.count,
                                     .first_span = first_span,
                                     .end_span = f->spans.count,
                                     .doubtful = walked->doubtful,
                                     .is_gap = is_gap,
                                     .is_in_doubt = is_gap && (walked->doubtful || walked->is_cut_in_doubt)};
    for (size_t i = 0; i < w->assumed.count; i++)
        settling->assumed.items[settling->assumed.count++] = w->assumed.items[i];
    for (size_t i = first_span; i < f->spans.count; i++)
        f->spans.items[i].owner = (uint32_t)settling->functions.count;
    return 0;
}

static bool is_safe(const struct code_settling *settling, const struct code_unsettled *unsettled)
{
    return code_is_safe(settling->f, settling->assumed.items, unsettled->first_assumed, unsettled->assumed_count);
}

// Whether its rules may be others, or more, by what is known now: what it jumps to turned out to be a function, too.
static bool may_be_better(const struct code_settling *settling, const struct code_unsettled *unsettled)
{
    const struct code_follower *f = settling->f;
    return unsettled->is_in_doubt ||
           (unsettled->is_gap && code_has_start(f, unsettled->first_span, unsettled->end_span, unsettled->pc)) ||
           !code_still_holds(f, settling->assumed.items, unsettled->first_assumed, unsettled->assumed_count);
}

// What is found now replaces what was found: if it is better, or that was false.
static int follow_again(struct code_settling *settling, size_t index)
{
    struct code_follower *f = settling->f;
    struct code_unsettled *before = &settling->functions.items[index];
    struct code_function gap = {.pc = before->pc, .found = CODE_FOUND_GAP};
    struct code_function *named = code_function_at(f, before->pc), *function = named ? named : &gap;
    const struct code_function known = *function;
    struct code_walked walked;
    size_t first_span = f->spans.count;
    *settling->is_contradicted = false;
    if (code_follow(f, function, &walked) != 0)
        return -1;
    bool is_followed = walked.outcome == CODE_FOLLOWED && !*settling->is_contradicted,
         was_safe = is_safe(settling, before);
    *settling->is_contradicted = false;
    // What was jumped to may be a function of its own by now, of which alone nothing proves where its stack is.
    if (is_followed && was_safe)
        is_followed =
            code_own_bytes(f, first_span, f->spans.count) >= code_own_bytes(f, before->first_span, before->end_span);
    if (!is_followed)
        f->spans.count = first_span;
    if (!is_followed && was_safe) {
        *function = known;
        before->is_in_doubt = false;
        return 0;
    }
    before->is_gone = true;
    if (!was_safe)
        code_learned_false(f, function->pc);
    if (!is_followed)
        return 0;
    *settling->doubtful += (uint64_t)walked.doubtful - before->doubtful;
    if (!named && !code_learn(f, function))
        return no_memory(settling);
    return code_settle_later(settling, function, first_span, &walked);
}

static void drop_spans(struct code_settling *settling)
{
    struct code_follower *f = settling->f;
    size_t count = 0;
    for (size_t i = 0; i < f->spans.count; i++) {
        uint32_t owner = f->spans.items[i].owner;
        if (!owner || !settling->functions.items[owner - 1].is_gone)
            f->spans.items[count++] = f->spans.items[i];
    }
    f->spans.count = count;
}

int code_settle(struct code_settling *settling)
{
    size_t first_new = settling->first_new;
    bool is_new = true;
    for (unsigned round = 0; round < ROUNDS_MAX && is_new; round++) {
        is_new = false;
        size_t count = settling->functions.count;
        for (size_t i = 0; i < count; i++) {
            const struct code_unsettled *unsettled = &settling->functions.items[i];
            bool is_first = round == 0 && i >= first_new;
            if (unsettled->is_gone || (is_first ? !may_be_better(settling, unsettled) : is_safe(settling, unsettled)))
                continue;
            is_new = true;
            if (follow_again(settling, i) != 0)
                return -1;
        }
    }
    for (size_t i = 0; i < settling->functions.count; i++)
        settling->functions.items[i].is_gone |= !is_safe(settling, &settling->functions.items[i]);
    drop_spans(settling);
    settling->first_new = settling->functions.count;
    return 0;
}

void code_settling_free(struct code_settling *settling)
{
    base_vector_free(&settling->functions.vector);
    base_vector_free(&settling->assumed.vector);
}
