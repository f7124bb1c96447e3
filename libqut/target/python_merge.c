// SPDX-License-Identifier: Apache-2.0
// Functions of CPython in a target -> the frames of a walk (libqut/cpython/merge.c).
#include <stdlib.h>
#include <string.h>

#include "libqut/target/python_inside.h"

static const char differ_text[] = "which native frames run its functions is not certain";

struct putting {
    const struct target_python *python;
    struct target_python_stack *stack;
    const struct qut_frame *native;
    struct qut_frame *frames;
    size_t count, max;
    uint32_t guessed_before, guessed_after; // the end's guessed_frame
};

static struct qut_frame frame_of(const struct putting *putting, const struct cpython_item *item, uint32_t number)
{
    const struct target_python *python = putting->python;
    const struct cpython_frame *taken = &putting->stack->taken.frames[item->index];
    uint32_t line = number ? target_python_line_of(python, python->functions[number - 1], taken->instruction) : 0;
    bool has_address = python->runtime.layout.form != CPYTHON_FRAME_OBJECTS;
    return (struct qut_frame){
        .pc = has_address ? taken->instruction : taken->code,
        .lookup_pc = CPYTHON_NUMBER_BASE | (uint64_t)number << CPYTHON_LINE_BITS | line,
        .sp = item->sp,
        .flags = QUT_FRAME_PYTHON | (item->is_guessed ? QUT_FRAME_GUESSED : 0u),
    };
}

static bool put(void *context, const struct cpython_item *item)
{
    struct putting *putting = context;
    struct target_python_stack *stack = putting->stack;
    if (putting->count == putting->max)
        return false;
    if (!item->is_function) {
        if (item->index == putting->guessed_before)
            putting->guessed_after = (uint32_t)putting->count;
        putting->frames[putting->count++] = putting->native[item->index];
        return true;
    }
    uint32_t number = stack->functions[item->index];
    if (number == TARGET_PYTHON_INTERNAL)
        return true;
    putting->frames[putting->count++] = frame_of(putting, item, number);
    stack->merged++;
    stack->guessed += item->is_guessed;
    return true;
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

static size_t put_all(const struct cpython_merging *merging, const struct target_python *python,
                      struct target_python_stack *stack, struct qut_frame *frames, size_t max, struct qut_end *end)
{
    struct putting putting = {.python = python,
                              .stack = stack,
                              .native = merging->native,
                              .frames = frames,
                              .max = max,
                              .guessed_before = end->guessed_frame,
                              .guessed_after = end->guessed_frame};
    cpython_each_merged(merging, put, &putting);
    end->guessed_frame = putting.guessed_after;
    if (putting.count == max && max < merging->count + shown_functions(stack)) {
        end->reason = QUT_END_LIMIT;
        end->pc = frames[max - 1].pc;
    }
    return putting.count;
}

size_t target_python_merge(struct qut_target *target, struct target_python_stack *stack, struct qut_frame *frames,
                           size_t count, size_t max, struct qut_end *end)
{
    struct target_python *python = target->python;
    const struct cpython_stack *taken = &stack->taken;
    stack->reason = NULL;
    if (!python || !python->found || count == 0)
        return count;
    struct cpython_merging merging = {.runtime = &python->runtime,
                                      .text_start = python->text_start,
                                      .text_end = python->text_end,
                                      .taken = taken,
                                      .native = frames,
                                      .count = count,
                                      .is_whole = end->reason == QUT_END_OUTERMOST};
    if (taken->group_count == 0 && !cpython_has_evaluator(&merging))
        return count;
    merging.native = copy_of(python, frames, count);
    if (!merging.native) {
        stack->reason = cpython_fault_text(CPYTHON_NO_MEMORY);
        return count;
    }
    bool is_certain = cpython_place(&merging);
    if (taken->fault != CPYTHON_FINE)
        stack->reason = cpython_fault_text(taken->fault);
    else if (!is_certain)
        stack->reason = differ_text;
    return put_all(&merging, python, stack, frames, max, end);
}
