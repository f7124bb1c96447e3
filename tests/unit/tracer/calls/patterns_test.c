// SPDX-License-Identifier: Apache-2.0
// Which functions a pattern means.
#include <check.h>
#include <stdlib.h>
#include <string.h>

#include "tests/support/run_suite.h"
#include "tracer/calls/patterns.h"

static const char *subject_path;

static const struct {
    const char *glob, *name;
    bool fits;
} names[] = {
    {"malloc", "malloc", true},
    {"malloc", "malloc_usable_size", false},
    {"mall*", "malloc", true},
    {"foo", "foo(int, char const*)", true},
    {"foo(int*", "foo(int, char const*)", true},
    {"foo", "foo(int) const", true},
    {"a::foo", "a::foo(std::vector<int, std::allocator<int> >&)", true},
    {"foo", "a::foo()", false},
    {"*::foo", "a::foo()", true},
    {"foo<int>", "void foo<int>(int)", true},
    {"void foo<int>", "void foo<int>(int)", true},
    {"f", "std::map<int, char> f(int)", true},
    {"a::f", "a::f(int) [clone .part.0]", true},
    {"f", "f(void (*)(int))", true},
    {"f", "f [clone .isra.0]", true},
    {"operator new", "operator new(unsigned long)", true},
    {"new", "operator new(unsigned long)", false},
    {"A::operator()", "A::operator()(int)", true},
    {"(anonymous namespace)::f", "(anonymous namespace)::f(int)", true},
    {"*", "", true},
    {"f", "", false},
    {"f", ")", false},
    {"f", "f)", false},
};

START_TEST(names_fit)
{
    ck_assert_msg(calls_name_fits(names[_i].glob, names[_i].name) == names[_i].fits, "%s: %s", names[_i].glob,
                  names[_i].name);
}
END_TEST

static const struct {
    const char *name, *bare;
} bares[] = {{"malloc", "malloc"},
             {"bool Parser::take(int)", "Parser::take"},
             {"void foo<int>(int)", "foo<int>"},
             {"operator new(unsigned long)", "operator new"},
             {"f [clone .isra.0]", "f"},
             {"a_name_of_more_than_twenty_four", "a_name_of_more_than_twe"},
             {"", ""}};

START_TEST(names_are_bared)
{
    char name[24];
    ck_assert_str_eq(calls_name_bare(bares[_i].name, name, sizeof name), bares[_i].bare);
}
END_TEST

static void add(struct calls_patterns *patterns, const char *text, bool is_excluded)
{
    struct base_error error = {0};
    ck_assert_int_eq(calls_patterns_add(patterns, text, is_excluded, &error), 0);
}

START_TEST(modules_are_wanted)
{
    struct calls_patterns patterns = {0};
    add(&patterns, "libfoo!*", false);
    add(&patterns, "redis-*!x", false);
    add(&patterns, "!libbar!*", false);
    add(&patterns, "libbaz*!x", true);
    ck_assert(calls_patterns_want_module(&patterns, "libfoo.so.6"));
    ck_assert(calls_patterns_want_module(&patterns, "libfoo"));
    ck_assert(!calls_patterns_want_module(&patterns, "libfoo-2.so"));
    ck_assert(calls_patterns_want_module(&patterns, "redis-server"));
    ck_assert(!calls_patterns_want_module(&patterns, "libbar.so"));
    ck_assert(!calls_patterns_want_module(&patterns, "libbaz.so"));
    add(&patterns, "y", false);
    ck_assert(calls_patterns_want_module(&patterns, "libbar.so"));
    calls_patterns_free(&patterns);
}
END_TEST

START_TEST(what_names_nothing_is_refused)
{
    static const char *const texts[] = {"", "!", "libc!", "!f!", "!!f"};
    struct calls_patterns patterns = {0};
    for (unsigned i = 0; i < sizeof texts / sizeof *texts; i++) {
        struct base_error error = {0};
        ck_assert_msg(calls_patterns_add(&patterns, texts[i], false, &error) == -1, "'%s'", texts[i]);
        ck_assert_int_eq(error.reason, BASE_ERR_MALFORMED);
    }
    ck_assert_uint_eq(patterns.count, 0);
}
END_TEST

START_TEST(functions_are_selected)
{
    struct calls_patterns patterns = {0};
    struct calls_selection selection = {0};
    struct calls_plan *plan;
    struct base_error error = {0};
    ck_assert_int_eq(calls_plan_make(subject_path, NULL, &plan, &error), 0);
    add(&patterns, "libcalls_subject!calls*", false);
    add(&patterns, "reads_return", false);
    add(&patterns, "nobody", false);
    add(&patterns, "other!*", false);
    add(&patterns, "*_by_*", true);
    ck_assert_int_eq(calls_patterns_select(&patterns, "libcalls_subject.so", plan, &selection, &error), 0);
    ck_assert_uint_eq(selection.count, 3);
    for (size_t i = 0; i < selection.count; i++)
        ck_assert_ptr_nonnull(
            strstr("calls calls_later calls_early", calls_plan_name(plan, &plan->functions[selection.items[i]])));
    ck_assert_uint_eq(patterns.items[0].functions, 6);
    ck_assert_uint_eq(patterns.items[0].refused, 0);
    ck_assert_uint_eq(patterns.items[1].functions, 1);
    ck_assert_uint_eq(patterns.items[1].refused, 1);
    ck_assert_uint_eq(patterns.items[2].functions, 0);
    ck_assert_uint_eq(patterns.items[3].functions, 0);
    calls_selection_free(&selection);
    calls_patterns_free(&patterns);
    calls_plan_free(plan);
}
END_TEST

int main(int argc, char **argv)
{
    if (argc != 2)
        return 2;
    subject_path = argv[1];
    Suite *suite = suite_create("patterns");
    TCase *tests = tcase_create("patterns");
    tcase_add_loop_test(tests, names_fit, 0, sizeof names / sizeof *names);
    tcase_add_loop_test(tests, names_are_bared, 0, sizeof bares / sizeof *bares);
    tcase_add_test(tests, modules_are_wanted);
    tcase_add_test(tests, what_names_nothing_is_refused);
    tcase_add_test(tests, functions_are_selected);
    tcase_set_timeout(tests, 60);
    suite_add_tcase(suite, tests);
    return run_suite(suite);
}
