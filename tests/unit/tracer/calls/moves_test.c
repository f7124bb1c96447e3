// SPDX-License-Identifier: Apache-2.0
// Moved prologues do what they did where they were: each way of moving one, executed.
#include <check.h>
#include <stdio.h>
#include <string.h>

#include "tests/support/run_suite.h"
#include "tests/unit/tracer/calls/patcher.h"

static const char *subject_path;

typedef uint64_t (*number_fn)(uint64_t, uint64_t);

struct expected {
    const char *name;
    enum qut_plan_kind kind;
    enum qut_plan_refusal refusal;
    uint8_t patch_at;
    int move; // of the last instruction that is moved; -1: any
    bool is_called;
    uint64_t a, b;
};

static uint64_t table_of_functions[2];

static const struct expected functions[] = {
    {"plain", QUT_PLAN_JUMP, 0, 0, QUT_MOVE_COPY, true, 3, 4},
    {"pushes", QUT_PLAN_JUMP, 0, 0, QUT_MOVE_COPY, true, 3, 4},
    {"reads_data", QUT_PLAN_JUMP, 0, 0, QUT_MOVE_ADDRESS, true, 3, 4},
    {"compares_data", QUT_PLAN_JUMP, 0, 0, QUT_MOVE_ADDRESS, true, 3, 4},
    {"takes_address", QUT_PLAN_JUMP, 0, 0, QUT_MOVE_ADDRESS, true, 3, 4},
    {"branches", QUT_PLAN_JUMP, 0, 0, QUT_MOVE_CONDITION, true, 0, 4},
    {"branches", QUT_PLAN_JUMP, 0, 0, QUT_MOVE_CONDITION, true, 1, 4},
    {"branches_far", QUT_PLAN_JUMP, 0, 0, QUT_MOVE_CONDITION, true, 5, 4},
    {"branches_far", QUT_PLAN_JUMP, 0, 0, QUT_MOVE_CONDITION, true, 3, 4},
    {"jumps", QUT_PLAN_JUMP, 0, 0, -1, true, 3, 4},
    {"jumps_far", QUT_PLAN_JUMP, 0, 0, QUT_MOVE_JUMP, true, 3, 4},
    {"loops_if", QUT_PLAN_JUMP, 0, 0, -1, true, 0, 4},
    {"loops_if", QUT_PLAN_JUMP, 0, 0, -1, true, 1, 4},
    {"loop_down", QUT_PLAN_JUMP, 0, 0, -1, true, 3, 1},
    {"loop_down", QUT_PLAN_JUMP, 0, 0, -1, true, 3, 4},
    {"calls", QUT_PLAN_JUMP, 0, 0, QUT_MOVE_CALL, true, 3, 4},
    {"calls_later", QUT_PLAN_JUMP, 0, 0, QUT_MOVE_CALL, true, 3, 4},
    {"calls_by_memory", QUT_PLAN_JUMP, 0, 0, QUT_MOVE_CALL_BY_ADDRESS, true, 3, 4},
    {"calls_by_register", QUT_PLAN_JUMP, 0, 0, QUT_MOVE_CALL_BY, true, 3, 0},
    {"calls_by_table", QUT_PLAN_JUMP, 0, 0, QUT_MOVE_CALL_BY, true, 0, 4},
    {"calls_early", QUT_PLAN_SHORT, 0, 0, QUT_MOVE_CALL_BY, true, 3, 0},
    {"tiny", QUT_PLAN_JUMP, 0, 0, QUT_MOVE_COPY, true, 3, 4},
    {"tiniest", QUT_PLAN_JUMP, 0, 0, QUT_MOVE_COPY, false, 3, 4},
    {"into_third", QUT_PLAN_SHORT, 0, 0, QUT_MOVE_COPY, true, 3, 4},
    {"into_second", QUT_PLAN_JUMP, 0, 0, -1, true, 3, 4},
    {"into_first", QUT_PLAN_TRAP, 0, 0, QUT_MOVE_COPY, true, 3, 4},
    {"to_itself", QUT_PLAN_JUMP, 0, 0, QUT_MOVE_COPY, true, 3, 4},
    {"marked", QUT_PLAN_JUMP, 0, 4, QUT_MOVE_COPY, true, 3, 4},
    {"nops", QUT_PLAN_NOPS, 0, 0, QUT_MOVE_SKIP, true, 3, 4},
    {"five_nops", QUT_PLAN_NOPS, 0, 0, QUT_MOVE_SKIP, true, 3, 4},
    {"has_table", QUT_PLAN_SHORT, 0, 0, QUT_MOVE_COPY, true, 3, 1},
    {"has_table", QUT_PLAN_SHORT, 0, 0, QUT_MOVE_COPY, true, 3, 0},
    {"left_nops", QUT_PLAN_NOPS, 0, 0, QUT_MOVE_SKIP, true, 3, 4},
    {"left_before", QUT_PLAN_SHORT, 0, 0, QUT_MOVE_SKIP, true, 300, 4},
    {"sled", QUT_PLAN_NOPS, 0, 0, QUT_MOVE_SKIP, true, 3, 4},
    {"enters_nameless", QUT_PLAN_JUMP, 0, 0, QUT_MOVE_CALL, true, 3, 4},
    {"left_reads", QUT_PLAN_REFUSED, QUT_PLAN_READS_RETURN, 0, -1, false, 3, 4},
    {"untold", QUT_PLAN_REFUSED, QUT_PLAN_NO_UNWIND, 0, -1, false, 3, 4},
    {"reads_return", QUT_PLAN_REFUSED, QUT_PLAN_READS_RETURN, 0, -1, false, 3, 4},
};
enum { FUNCTIONS = sizeof functions / sizeof *functions };

static uint64_t call(const struct patcher *patcher, const struct expected *expected)
{
    number_fn function = (number_fn)patcher_address(patcher, expected->name);
    uint64_t a = expected->a, b = expected->b ? expected->b : (uint64_t)patcher_address(patcher, "where_from");
    if (strcmp(expected->name, "calls_by_table") == 0) {
        table_of_functions[1] = (uint64_t)patcher_address(patcher, "where_from");
        a = (uint64_t)table_of_functions;
    }
    if (strcmp(expected->name, "has_table") == 0)
        b = expected->b;
    return function(a, b);
}

START_TEST(each_is_planned_as_it_should)
{
    const struct expected *expected = &functions[_i];
    struct patcher patcher;
    ck_assert(patcher_open(&patcher, subject_path));
    const struct qut_plan_function *function = patcher_find(&patcher, expected->name);
    ck_assert_msg(function->kind == expected->kind && function->refusal == expected->refusal, "%s: %s, %s",
                  expected->name, calls_kind_text(function->kind), calls_refusal_text(function->refusal));
    ck_assert_uint_eq(function->patch_at, expected->patch_at);
    if (expected->move >= 0 && function->instruction_count)
        ck_assert_msg(function->instructions[function->instruction_count - 1].move == expected->move, "%s: move %u",
                      expected->name, function->instructions[function->instruction_count - 1].move);
    ck_assert_int_eq((function->flags & QUT_PLAN_LOOPS) != 0, strcmp(expected->name, "to_itself") == 0);
    patcher_close(&patcher);
}
END_TEST

START_TEST(each_does_the_same_when_patched)
{
    struct patcher patcher;
    uint64_t before[FUNCTIONS];
    ck_assert(patcher_open(&patcher, subject_path));
    for (unsigned i = 0; i < FUNCTIONS; i++)
        before[i] = functions[i].is_called ? call(&patcher, &functions[i]) : 0;
    ck_assert_uint_gt(patcher_patch(&patcher), 20);
    for (unsigned i = 0; i < FUNCTIONS; i++) {
        if (!functions[i].is_called)
            continue;
        uint64_t entries = patcher_entries(&patcher), now = call(&patcher, &functions[i]);
        ck_assert_msg(now == before[i], "%s: %#lx instead of %#lx", functions[i].name, now, before[i]);
        ck_assert_msg(patcher_entries(&patcher) > entries, "%s was not entered", functions[i].name);
    }
    patcher_restore(&patcher);
    uint64_t entries = patcher_entries(&patcher);
    for (unsigned i = 0; i < FUNCTIONS; i++)
        if (functions[i].is_called)
            ck_assert_uint_eq(call(&patcher, &functions[i]), before[i]);
    ck_assert_uint_eq(patcher_entries(&patcher), entries);
    patcher_close(&patcher);
}
END_TEST

START_TEST(counting_does_the_same)
{
    struct patcher patcher;
    uint64_t before[FUNCTIONS];
    ck_assert(patcher_open(&patcher, subject_path));
    for (unsigned i = 0; i < FUNCTIONS; i++)
        before[i] = functions[i].is_called ? call(&patcher, &functions[i]) : 0;
    patcher.counts = true;
    patcher_patch(&patcher);
    for (unsigned round = 0; round < 2; round++) { // without cells by way of the stub
        uint64_t entries = patcher_entries(&patcher);
        for (unsigned i = 0; i < FUNCTIONS; i++) {
            if (!functions[i].is_called)
                continue;
            const struct qut_plan_function *function = patcher_find(&patcher, functions[i].name);
            uint64_t cell = round ? patcher_cell(&patcher, function) : 0;
            ck_assert_msg(call(&patcher, &functions[i]) == before[i], "%s", functions[i].name);
            if (round)
                ck_assert_msg(patcher_cell(&patcher, function) > cell, "%s was not counted", functions[i].name);
        }
        ck_assert_int_eq(patcher_entries(&patcher) > entries, round == 0);
        if (round == 0)
            patcher_give_cells(&patcher);
    }
    patcher_restore(&patcher);
    patcher_take_cells();
    patcher_close(&patcher);
}
END_TEST

// 3 rounds: 4 entries of to_itself, one of each other.
START_TEST(rounds_to_the_entry_are_entries)
{
    struct patcher patcher;
    ck_assert(patcher_open(&patcher, subject_path));
    patcher_patch(&patcher);
    number_fn function = (number_fn)patcher_address(&patcher, "to_itself");
    ck_assert_uint_eq(function(0, 4), 8);
    ck_assert_uint_eq(patcher_entries(&patcher), 4);
    patcher_restore(&patcher);
    patcher_close(&patcher);
}
END_TEST

// It has neither a name nor unwind information: only its place for entries says that it is there.
START_TEST(what_has_no_name_is_entered)
{
    struct patcher patcher;
    ck_assert(patcher_open(&patcher, subject_path));
    patcher_patch(&patcher);
    number_fn function = (number_fn)patcher_address(&patcher, "enters_nameless");
    ck_assert_uint_eq(function(3, 4), 13);
    ck_assert_uint_eq(patcher_entries(&patcher), 2);
    patcher_restore(&patcher);
    patcher_close(&patcher);
}
END_TEST

START_TEST(too_far_is_said)
{
    struct patcher patcher;
    struct calls_thunk thunk;
    struct calls_patch patch;
    ck_assert(patcher_open(&patcher, subject_path));
    const struct qut_plan_function *function = patcher_find(&patcher, "reads_data");
    struct calls_thunk_place place = {.load_bias = 0x10000, .thunk_address = 0x7fff0000, .block_address = 0x7ffe0000};
    ck_assert(calls_thunk_make(function, &place, &thunk) && calls_patch_make(function, &place, &patch));
    place.thunk_address = 0x180000000;
    place.block_address = 0x17ffff000;
    ck_assert(!calls_thunk_make(function, &place, &thunk));
    ck_assert(!calls_patch_make(function, &place, &patch));
    place = (struct calls_thunk_place){.thunk_address = 0x10000, .block_address = 0x100000000};
    ck_assert(!calls_thunk_make(function, &place, &thunk));
    ck_assert(!calls_thunk_make(patcher_find(&patcher, "reads_return"), &place, &thunk));
    patcher_close(&patcher);
}
END_TEST

int main(int argc, char **argv)
{
    if (argc != 2)
        return 2;
    subject_path = argv[1];
    Suite *suite = suite_create("moves");
    TCase *tests = tcase_create("moves");
    tcase_add_loop_test(tests, each_is_planned_as_it_should, 0, FUNCTIONS);
    tcase_add_test(tests, each_does_the_same_when_patched);
    tcase_add_test(tests, counting_does_the_same);
    tcase_add_test(tests, rounds_to_the_entry_are_entries);
    tcase_add_test(tests, what_has_no_name_is_entered);
    tcase_add_test(tests, too_far_is_said);
    tcase_set_timeout(tests, 60);
    suite_add_tcase(suite, tests);
    return run_suite(suite);
}
