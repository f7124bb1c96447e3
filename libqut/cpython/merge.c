// SPDX-License-Identifier: Apache-2.0
// Functions of CPython -> the frames of a walk. A native frame of the evaluator is followed by the functions that it
// runs. Where a version leaves something of a group in its evaluator's native frame, that tells the two belong
// together; else they are counted, and both have to be used up.
#include "libqut/cpython/cpython.h"

enum { NOWHERE = -1 };

static bool is_evaluator(const struct cpython_merging *merging, size_t index)
{
    const struct cpython_runtime *runtime = merging->runtime;
    uint64_t pc = merging->native[index].lookup_pc;
    return pc >= runtime->evaluator_start && pc < runtime->evaluator_end;
}

static bool is_interrupted(const struct cpython_merging *merging, size_t index)
{
    return merging->native[index].flags & QUT_FRAME_INTERRUPTED;
}

// Whether an address lies in a native frame. The outermost that is known has no end.
static bool is_in(const struct cpython_merging *merging, size_t index, uint64_t address)
{
    uint64_t start = merging->native[index].sp;
    if (address < start)
        return false;
    if (index + 1 == merging->count)
        return merging->is_whole || is_evaluator(merging, index);
    return address < merging->native[index + 1].sp;
}

// Groups of each state in order, innermost first: the next of each, and the end.
static unsigned cut_by_state(const struct cpython_stack *taken, size_t next[CPYTHON_STATES_MAX],
                             size_t end[CPYTHON_STATES_MAX])
{
    unsigned count = 0;
    for (size_t i = 0; i < taken->group_count; i++) {
        if (i == 0 || taken->groups[i].state != taken->groups[i - 1].state) {
            if (count == CPYTHON_STATES_MAX)
                break;
            next[count++] = i;
        }
        end[count - 1] = i + 1;
    }
    return count;
}

// Returns how many evaluators have no group that should have one.
static size_t place_by_anchor(struct cpython_merging *merging)
{
    const struct cpython_stack *taken = merging->taken;
    size_t next[CPYTHON_STATES_MAX], end[CPYTHON_STATES_MAX], missing = 0;
    unsigned states = cut_by_state(taken, next, end);
    bool is_innermost = true;
    for (size_t i = 0; i < merging->count; i++) {
        bool is_met = false;
        for (unsigned s = 0; s < states && !is_met; s++) {
            is_met =
                next[s] < end[s] && taken->groups[next[s]].anchor && is_in(merging, i, taken->groups[next[s]].anchor);
            if (is_met)
                merging->places[next[s]++] = (int32_t)i;
        }
        if (!is_met && !is_evaluator(merging, i))
            continue;
        // Where a function begins or ends, its evaluator has nothing to show, or a record that leads nowhere.
        bool is_between = is_innermost && is_interrupted(merging, i);
        missing += (!is_met || (is_innermost && taken->is_entering)) && !is_between;
        is_innermost = false;
    }
    return missing;
}

static bool has_two_states(const struct cpython_stack *taken)
{
    return taken->group_count && taken->groups[0].state != taken->groups[taken->group_count - 1].state;
}

// Whether a frame that has the size of an evaluator's lies outside of it, in the same code: compilers put what is
// rarely run elsewhere, under a name that stripped files do not have. All frames of one function have one size.
static bool has_other_part(const struct cpython_merging *merging, size_t evaluator)
{
    if (evaluator + 1 >= merging->count)
        return false;
    uint64_t size = merging->native[evaluator + 1].sp - merging->native[evaluator].sp;
    for (size_t i = 0; i + 1 < merging->count; i++) {
        uint64_t pc = merging->native[i].lookup_pc;
        if (!is_evaluator(merging, i) && merging->native[i + 1].sp - merging->native[i].sp == size &&
            pc >= merging->text_start && pc < merging->text_end)
            return true;
    }
    return false;
}

// Whether a function may be about to begin or to end: the evaluator itself was interrupted, or calls only what checks
// its result, which calls one function more.
static bool may_be_between(const struct cpython_merging *merging, size_t evaluator)
{
    enum { CHECKS = 2 };
    return evaluator <= CHECKS || is_interrupted(merging, evaluator) || is_interrupted(merging, evaluator - CHECKS) ||
           is_interrupted(merging, evaluator - 1);
}

// One group for each evaluator. Returns whether that is not certain.
static size_t place_by_count(struct cpython_merging *merging)
{
    const struct cpython_stack *taken = merging->taken;
    size_t evaluators = 0, next = 0, first = 0;
    for (size_t i = merging->count; i-- > 0;)
        if (is_evaluator(merging, i)) {
            evaluators++;
            first = i;
        }
    if (evaluators == 0)
        return 0;
    // Where a function begins or ends, its evaluator has none: only the innermost can be there.
    size_t skip = merging->is_whole && evaluators == taken->group_count + 1;
    if (merging->is_whole && evaluators != taken->group_count + skip)
        return evaluators;
    // Which of two interpreters called the other is not told either: the newer one is taken first.
    // One that is not recognized, and one that has none, would make up for each other.
    bool may_make_up = skip == 0 && may_be_between(merging, first) && has_other_part(merging, first);
    bool is_uncertain = !merging->is_whole || has_two_states(taken) || may_make_up;
    for (size_t i = first + skip; i < merging->count && next < taken->group_count; i++)
        if (is_evaluator(merging, i)) {
            merging->places[next] = (int32_t)i;
            merging->is_guessed[next++] = is_uncertain;
        }
    return is_uncertain;
}

// Groups that belong to none of the native frames: behind a walk that was cut short, else behind the last certain
// place. Returns whether that is not certain.
static bool place_rest(struct cpython_merging *merging)
{
    const struct cpython_stack *taken = merging->taken;
    int32_t last = NOWHERE;
    uint32_t state = UINT32_MAX;
    bool is_certain = !merging->is_whole, any = false;
    for (size_t i = 0; i < taken->group_count; i++)
        last = merging->places[i] > last ? merging->places[i] : last;
    for (size_t i = 0; i < taken->group_count; i++) {
        if (merging->places[i] != NOWHERE)
            continue;
        const struct cpython_group *group = &taken->groups[i];
        is_certain = is_certain && (state == UINT32_MAX || state == group->state) &&
                     (!group->anchor || group->anchor >= merging->native[merging->count - 1].sp);
        state = group->state;
        any = true;
    }
    if (!any)
        return false;
    merging->has_unplaced = !is_certain;
    int32_t place = is_certain || last == NOWHERE ? (int32_t)merging->count - 1 : last;
    for (size_t i = 0; i < taken->group_count; i++)
        if (merging->places[i] == NOWHERE) {
            merging->places[i] = place;
            merging->is_guessed[i] = !is_certain;
        }
    return !is_certain;
}

bool cpython_has_evaluator(const struct cpython_merging *merging)
{
    for (size_t i = 0; i < merging->count; i++)
        if (is_evaluator(merging, i))
            return true;
    return false;
}

bool cpython_place(struct cpython_merging *merging)
{
    merging->has_unplaced = false;
    for (size_t i = 0; i < merging->taken->group_count; i++) {
        merging->places[i] = NOWHERE;
        merging->is_guessed[i] = false;
    }
    bool has_anchors = merging->runtime->layout.form != CPYTHON_FRAME_OBJECTS;
    size_t missing = has_anchors ? place_by_anchor(merging) : place_by_count(merging);
    bool differs = place_rest(merging);
    return !missing && !differs;
}

static bool put_group(const struct cpython_merging *merging, size_t index, uint64_t sp,
                      bool (*put)(void *context, const struct cpython_item *), void *context)
{
    const struct cpython_group *group = &merging->taken->groups[index];
    struct cpython_item item = {.is_function = true, .is_guessed = merging->is_guessed[index], .sp = sp};
    for (item.index = group->first; item.index < group->first + group->count; item.index++)
        if (!put(context, &item))
            return false;
    return true;
}

// Groups in the order of their places; those of one place in the order that they have.
void cpython_each_merged(const struct cpython_merging *merging, bool (*put)(void *context, const struct cpython_item *),
                         void *context)
{
    size_t next[CPYTHON_STATES_MAX], end[CPYTHON_STATES_MAX];
    unsigned states = cut_by_state(merging->taken, next, end);
    for (size_t i = 0; i < merging->count; i++) {
        struct cpython_item item = {.index = i, .sp = merging->native[i].sp};
        if (!put(context, &item))
            return;
        uint64_t sp = i + 1 < merging->count ? merging->native[i + 1].sp : merging->native[i].sp;
        for (unsigned s = 0; s < states; s++)
            while (next[s] < end[s] && merging->places[next[s]] == (int32_t)i)
                if (!put_group(merging, next[s]++, sp, put, context))
                    return;
    }
}
