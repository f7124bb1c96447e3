// SPDX-License-Identifier: Apache-2.0
// Functions of CPython among native frames: each behind its evaluator, or marked. "E" is a frame of the evaluator, "n"
// another one; functions have numbers, innermost 1.
#include <check.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "libqut/target/python_inside.h"
#include "tests/support/run_suite.h"

enum { EVALUATOR = 0x1000, FRAME_BYTES = 0x100, STACK = 0x700000, OTHER = 0x9000, FUNCTIONS = 9, FRAMES_MAX = 64 };

static struct target_python python;
static struct qut_target target;
static struct target_python_stack *stack;
static struct target_python_function functions[FUNCTIONS];
static struct target_python_function *function_list[FUNCTIONS];
static struct qut_frame frames[FRAMES_MAX];
static size_t count;
static struct qut_end end;

static void set_up(void)
{
    python = (struct target_python){.found = 1, .functions = function_list, .function_count = FUNCTIONS};
    python.runtime.evaluator_start = EVALUATOR;
    python.runtime.evaluator_end = EVALUATOR + 0x100;
    python.runtime.layout.form = CPYTHON_ENTRY_FRAMES;
    python.text_end = OTHER + 1;
    for (size_t i = 0; i < FUNCTIONS; i++)
        function_list[i] = &functions[i];
    target = (struct qut_target){.python = &python};
    stack = target_python_stack_new();
    ck_assert_ptr_nonnull(stack);
}

static void tear_down(void)
{
    target_python_stack_free(stack);
    free(python.scratch);
}

// "nEnE": innermost first. An upper letter that is interrupted is 'X'. Each has FRAME_BYTES, but 'l', which is larger.
static void walk(const char *native, enum qut_end_reason reason)
{
    uint64_t sp = STACK;
    stack->taken.fault = CPYTHON_FINE;
    stack->taken.frame_count = stack->taken.group_count = 0;
    stack->taken.is_entering = false;
    end = (struct qut_end){.reason = reason, .guessed_frame = QUT_NO_GUESS};
    for (count = 0; native[count]; count++) {
        bool is_evaluator = native[count] == 'E' || native[count] == 'X';
        uint64_t pc = is_evaluator ? EVALUATOR + 0x10 : OTHER;
        frames[count] = (struct qut_frame){
            .pc = pc, .lookup_pc = pc, .sp = sp, .flags = native[count] == 'X' ? QUT_FRAME_INTERRUPTED : 0u};
        sp += native[count] == 'n' ? FRAME_BYTES / 2 : FRAME_BYTES;
    }
}

// A group of the next functions, in the native frame of this index; -1: it is not known where.
static void group(int index, unsigned functions_in_it, unsigned state)
{
    struct cpython_stack *taken = &stack->taken;
    taken->groups[taken->group_count++] = (struct cpython_group){
        .anchor = index >= 0 ? frames[index].sp + 0x18 : 0,
        .first = (uint32_t)taken->frame_count,
        .count = functions_in_it,
        .state = state,
    };
    taken->state_count = state + 1;
    for (unsigned i = 0; i < functions_in_it; i++) {
        stack->functions[taken->frame_count] = (uint32_t)taken->frame_count + 1;
        taken->frames[taken->frame_count++] = (struct cpython_frame){.code = 8, .instruction = 16};
    }
}

static void expect(const char *merged, bool is_certain, size_t max)
{
    char text[2 * FRAMES_MAX], *at = text;
    count = target_python_merge(&target, stack, frames, count, max, &end);
    for (size_t i = 0; i < count; i++) {
        uint32_t number = target_python_number(frames[i].lookup_pc);
        bool is_evaluator = frames[i].pc == EVALUATOR + 0x10;
        *at++ = frames[i].flags & QUT_FRAME_PYTHON ? (char)('0' + number) : is_evaluator ? 'E' : 'n';
        if (frames[i].flags & QUT_FRAME_GUESSED)
            *at++ = '?';
    }
    *at = 0;
    ck_assert_str_eq(text, merged);
    ck_assert_int_eq(stack->reason == NULL, is_certain);
}

START_TEST(each_behind_its_evaluator)
{
    walk("nEnnEn", QUT_END_OUTERMOST);
    group(1, 2, 0);
    group(4, 1, 0);
    expect("nE12nnE3n", true, FRAMES_MAX);
    ck_assert_int_eq((int)stack->merged, 3);
}
END_TEST

START_TEST(no_python_in_the_thread)
{
    walk("nnn", QUT_END_OUTERMOST);
    stack->taken.fault = CPYTHON_NO_THREAD;
    expect("nnn", true, FRAMES_MAX);
    walk("nEn", QUT_END_OUTERMOST);
    stack->taken.fault = CPYTHON_NO_THREAD;
    expect("nEn", false, FRAMES_MAX);
}
END_TEST

START_TEST(innermost_begins_or_ends)
{
    walk("XnEn", QUT_END_OUTERMOST);
    group(2, 1, 0);
    expect("EnE1n", true, FRAMES_MAX);
    walk("XnEn", QUT_END_OUTERMOST); // its record is there, and is not filled
    stack->taken.is_entering = true;
    group(0, 0, 0);
    group(2, 1, 0);
    expect("EnE1n", true, FRAMES_MAX);
    walk("nEnEn", QUT_END_OUTERMOST); // but not while it calls
    stack->taken.is_entering = true;
    group(1, 0, 0);
    group(3, 1, 0);
    expect("nEnE1n", false, FRAMES_MAX);
    walk("nEnEn", QUT_END_OUTERMOST); // nor further out
    group(1, 1, 0);
    expect("nE1nEn", false, FRAMES_MAX);
}
END_TEST

START_TEST(groups_that_belong_nowhere)
{
    walk("nEnn", QUT_END_OUTERMOST);
    group(1, 1, 0);
    group(-1, 2, 0);
    expect("nE12?3?nn", false, FRAMES_MAX);
    // Behind a walk that was cut short they are where they belong.
    walk("nEn", QUT_END_NO_TABLE);
    group(1, 1, 0);
    group(2, 2, 0);
    stack->taken.groups[1].anchor = frames[2].sp + 0x10000;
    expect("nE1n23", true, FRAMES_MAX);
    // A group that lies further in than the one before it.
    walk("nEnEn", QUT_END_OUTERMOST);
    group(3, 1, 0);
    group(1, 1, 0);
    expect("nEnE12?n", false, FRAMES_MAX);
}
END_TEST

START_TEST(two_interpreters)
{
    walk("nEnEnE", QUT_END_OUTERMOST); // the state that is listed first is the outer one
    group(3, 1, 0);
    group(5, 1, 0);
    group(1, 1, 1);
    expect("nE3nE1nE2", true, FRAMES_MAX);
}
END_TEST

START_TEST(by_count)
{
    python.runtime.layout.form = CPYTHON_FRAME_OBJECTS;
    walk("nEnEn", QUT_END_OUTERMOST);
    group(-1, 1, 0);
    group(-1, 1, 0);
    expect("nE1nE2n", true, FRAMES_MAX);
    walk("nEnEn", QUT_END_OUTERMOST); // the innermost ends
    group(-1, 1, 0);
    expect("nEnE1n", true, FRAMES_MAX);
    walk("nEnEnEn", QUT_END_OUTERMOST);
    group(-1, 1, 0);
    expect("nEnEnEn1?", false, FRAMES_MAX);
    walk("nEn", QUT_END_OUTERMOST);
    group(-1, 1, 0);
    group(-1, 1, 0);
    expect("nEn1?2?", false, FRAMES_MAX);
    walk("nEnEn", QUT_END_OUTERMOST); // of two interpreters
    group(-1, 1, 0);
    group(-1, 1, 1);
    expect("nE1?nE2?n", false, FRAMES_MAX);
    walk("nElEn", QUT_END_OUTERMOST); // a frame as large as an evaluator's: it may be one
    group(-1, 1, 0);
    group(-1, 1, 0);
    expect("nE1?nE2?n", false, FRAMES_MAX);
    walk("nnnElEn", QUT_END_OUTERMOST); // then the innermost would have to be between functions
    group(-1, 1, 0);
    group(-1, 1, 0);
    expect("nnnE1nE2n", true, FRAMES_MAX);
    python.text_end = EVALUATOR; // or it is of another library
    walk("nElEn", QUT_END_OUTERMOST);
    group(-1, 1, 0);
    group(-1, 1, 0);
    expect("nE1nE2n", true, FRAMES_MAX);
    walk("nEnE", QUT_END_NO_TABLE);
    group(-1, 1, 0);
    group(-1, 1, 0);
    group(-1, 1, 0);
    expect("nE1?nE2?3", false, FRAMES_MAX);
}
END_TEST

START_TEST(room_ends)
{
    walk("nEnEn", QUT_END_OUTERMOST);
    group(1, 3, 0);
    group(3, 1, 0);
    expect("nE12", true, 4);
    ck_assert_int_eq((int)end.reason, QUT_END_LIMIT);
    walk("nEn", QUT_END_OUTERMOST);
    group(1, 2, 0);
    expect("nE12n", true, 5);
    ck_assert_int_eq((int)end.reason, QUT_END_OUTERMOST);
}
END_TEST

START_TEST(internal_frames_are_left_out)
{
    walk("nEn", QUT_END_OUTERMOST);
    group(1, 3, 0);
    stack->functions[1] = TARGET_PYTHON_INTERNAL;
    expect("nE13n", true, FRAMES_MAX);
}
END_TEST

START_TEST(guesses_of_the_walk_stay_where_they_were)
{
    walk("nEnn", QUT_END_OUTERMOST);
    end.guessed_frame = 2;
    group(1, 2, 0);
    expect("nE12nn", true, FRAMES_MAX);
    ck_assert_int_eq((int)end.guessed_frame, 4);
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("python");
    TCase *tcase = tcase_create("python");
    tcase_add_checked_fixture(tcase, set_up, tear_down);
    tcase_set_timeout(tcase, 60);
    tcase_add_test(tcase, each_behind_its_evaluator);
    tcase_add_test(tcase, no_python_in_the_thread);
    tcase_add_test(tcase, innermost_begins_or_ends);
    tcase_add_test(tcase, groups_that_belong_nowhere);
    tcase_add_test(tcase, two_interpreters);
    tcase_add_test(tcase, by_count);
    tcase_add_test(tcase, room_ends);
    tcase_add_test(tcase, internal_frames_are_left_out);
    tcase_add_test(tcase, guesses_of_the_walk_stay_where_they_were);
    suite_add_tcase(suite, tcase);
    return run_suite(suite);
}
