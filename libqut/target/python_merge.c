// SPDX-License-Identifier: Apache-2.0
// Functions of CPython -> the frames of a walk. A native frame of the evaluator is followed by the functions that it
// runs. Where a version leaves something of a group in its evaluator's native frame, that tells the two belong
// together; else they are counted, and both have to be used up.
#include <stdlib.h>
#include <string.h>

#include "libqut/target/python_inside.h"

enum { NOWHERE = -1 };
static const char differ_text[] = "which native frames run its functions is not certain";

struct merging {
    const struct target_python *python;
    struct target_python_stack *stack;
    const struct qut_frame *native;
    size_t count;
    bool is_whole;                      // the walk came to the outermost frame
    int32_t places[CPYTHON_GROUPS_MAX]; // of each group: the native frame before it
    bool is_guessed[CPYTHON_GROUPS_MAX];
};

static bool is_evaluator(const struct merging *merging, size_t index)
{
    const struct cpython_runtime *runtime = &merging->python->runtime;
    uint64_t pc = merging->native[index].lookup_pc;
    return pc >= runtime->evaluator_start && pc < runtime->evaluator_end;
}

static bool is_interrupted(const struct merging *merging, size_t index)
{
    return merging->native[index].flags & QUT_FRAME_INTERRUPTED;
}

// Whether an address lies in a native frame. The outermost that is known has no end.
static bool is_in(const struct merging *merging, size_t index, uint64_t address)
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
static size_t place_by_anchor(struct merging *merging)
{
    const struct cpython_stack *taken = &merging->stack->taken;
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
static bool has_other_part(const struct merging *merging, size_t evaluator)
{
    const struct target_python *python = merging->python;
    if (evaluator + 1 >= merging->count)
        return false;
    uint64_t size = merging->native[evaluator + 1].sp - merging->native[evaluator].sp;
    for (size_t i = 0; i + 1 < merging->count; i++) {
        uint64_t pc = merging->native[i].lookup_pc;
        if (!is_evaluator(merging, i) && merging->native[i + 1].sp - merging->native[i].sp == size &&
            pc >= python->text_start && pc < python->text_end)
            return true;
    }
    return false;
}

// Whether a function may be about to begin or to end: the evaluator itself was interrupted, or calls only what checks
// its result, which calls one function more.
static bool may_be_between(const struct merging *merging, size_t evaluator)
{
    enum { CHECKS = 2 };
    return evaluator <= CHECKS || is_interrupted(merging, evaluator) || is_interrupted(merging, evaluator - CHECKS) ||
           is_interrupted(merging, evaluator - 1);
}

// One group for each evaluator. Returns whether that is not certain.
static size_t place_by_count(struct merging *merging)
{
    const struct cpython_stack *taken = &merging->stack->taken;
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
static bool place_rest(struct merging *merging)
{
    const struct cpython_stack *taken = &merging->stack->taken;
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
    int32_t place = is_certain || last == NOWHERE ? (int32_t)merging->count - 1 : last;
    for (size_t i = 0; i < taken->group_count; i++)
        if (merging->places[i] == NOWHERE) {
            merging->places[i] = place;
            merging->is_guessed[i] = !is_certain;
        }
    return !is_certain;
}

static void put_group(struct merging *merging, size_t index, uint64_t sp, struct qut_frame *frames, size_t *count,
                      size_t max)
{
    struct target_python_stack *stack = merging->stack;
    const struct cpython_group *group = &stack->taken.groups[index];
    for (size_t i = group->first; i < group->first + group->count && *count < max; i++) {
        uint32_t number = stack->functions[i];
        uint64_t instruction = stack->taken.frames[i].instruction, pc = instruction;
        uint32_t line = 0;
        if (number == TARGET_PYTHON_INTERNAL)
            continue;
        if (number)
            line = target_python_line_of(merging->python, merging->python->functions[number - 1], instruction);
        if (merging->python->runtime.layout.form == CPYTHON_FRAME_OBJECTS)
            pc = stack->taken.frames[i].code;
        frames[(*count)++] = (struct qut_frame){
            .pc = pc,
            .lookup_pc = TARGET_PYTHON_BASE | (uint64_t)number << TARGET_PYTHON_LINE_BITS | line,
            .sp = sp,
            .flags = QUT_FRAME_PYTHON | (merging->is_guessed[index] ? QUT_FRAME_GUESSED : 0u),
        };
        stack->merged++;
        stack->guessed += merging->is_guessed[index];
    }
}

// Groups in the order of their places; those of one place in the order that they have.
static size_t put_all(struct merging *merging, struct qut_frame *frames, size_t max, uint32_t *guessed_frame)
{
    const struct cpython_stack *taken = &merging->stack->taken;
    size_t next[CPYTHON_STATES_MAX], end[CPYTHON_STATES_MAX], count = 0;
    unsigned states = cut_by_state(taken, next, end);
    uint32_t guessed = *guessed_frame;
    for (size_t i = 0; i < merging->count && count < max; i++) {
        if (i == guessed)
            *guessed_frame = (uint32_t)count;
        frames[count++] = merging->native[i];
        uint64_t sp = i + 1 < merging->count ? merging->native[i + 1].sp : merging->native[i].sp;
        for (unsigned s = 0; s < states; s++)
            while (next[s] < end[s] && merging->places[next[s]] == (int32_t)i)
                put_group(merging, next[s]++, sp, frames, &count, max);
    }
    return count;
}

static size_t shown_functions(const struct target_python_stack *stack)
{
    size_t count = 0;
    for (size_t i = 0; i < stack->taken.frame_count; i++)
        count += stack->functions[i] != TARGET_PYTHON_INTERNAL;
    return count;
}

static const struct qut_frame *copy_of(struct target_python *python, const struct qut_frame *frames, size_t count)
{
    if (count > python->scratch_capacity) {
        struct qut_frame *scratch = realloc(python->scratch, count * sizeof *scratch);
        if (!scratch)
            return NULL;
        python->scratch = scratch;
        python->scratch_capacity = count;
    }
    memcpy(python->scratch, frames, count * sizeof *frames);
    return python->scratch;
}

static bool has_evaluator(const struct merging *merging)
{
    for (size_t i = 0; i < merging->count; i++)
        if (is_evaluator(merging, i))
            return true;
    return false;
}

size_t target_python_merge(struct qut_target *target, struct target_python_stack *stack, struct qut_frame *frames,
                           size_t count, size_t max, struct qut_end *end)
{
    struct target_python *python = target->python;
    struct merging merging = {.python = python, .stack = stack, .native = frames, .count = count};
    const struct cpython_stack *taken = &stack->taken;
    stack->reason = NULL;
    if (!python || !python->found || count == 0 || (taken->group_count == 0 && !has_evaluator(&merging)))
        return count;
    merging.native = copy_of(python, frames, count);
    if (!merging.native) {
        stack->reason = cpython_fault_text(CPYTHON_NO_MEMORY);
        return count;
    }
    merging.is_whole = end->reason == QUT_END_OUTERMOST;
    for (size_t i = 0; i < taken->group_count; i++)
        merging.places[i] = NOWHERE;
    bool has_anchors = python->runtime.layout.form != CPYTHON_FRAME_OBJECTS;
    size_t missing = has_anchors ? place_by_anchor(&merging) : place_by_count(&merging);
    bool differs = place_rest(&merging);
    if (taken->fault != CPYTHON_FINE)
        stack->reason = cpython_fault_text(taken->fault);
    else if (missing || differs)
        stack->reason = differ_text;
    size_t put = put_all(&merging, frames, max, &end->guessed_frame);
    if (put == max && put < count + shown_functions(stack)) {
        end->reason = QUT_END_LIMIT;
        end->pc = frames[put - 1].pc;
    }
    return put;
}
