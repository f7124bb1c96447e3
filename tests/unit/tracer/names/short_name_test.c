// SPDX-License-Identifier: Apache-2.0
// Names for less room than they need: what tells them apart stays, and nothing is wider than it may be.
#include <stdlib.h>
#include <string.h>

#include "tests/support/run_suite.h"
#include "tracer/names/short_name.h"

static const struct {
    const char *name;
    size_t columns;
    const char *wanted;
} cases[] = {
    {"main", 3, "m…n"},
    {"main", 4, "main"},
    {"std::map<int, std::vector<char> >::operator[](int const&)", 80,
     "std::map<int, std::vector<char> >::operator[](int const&)"},
    {"std::map<int, std::vector<char> >::operator[](int const&)", 56,
     "std::map<int, std::vector<…> >::operator[](int const&)"},
    {"std::map<int, std::vector<char> >::operator[](int const&)", 40, "std::map<…>::operator[](…)"},
    {"std::map<int, std::vector<char> >::operator[](int const&)", 20, "std::map<…rator[](…)"},
    {"bool operator< <char>(std::string const&)", 30, "bool operator< <…>(…)"},
    {"smart<int>::operator->(void*) const", 30, "smart<…>::operator->(…) const"},
    {"callable<int>::operator()(int, int)", 30, "callable<…>::operator()(…)"},
    {"stream<char>::operator<<(long long)", 30, "stream<…>::operator<<(…)"},
    {"(anonymous namespace)::work(std::vector<int>)", 40, "(anonymous namespace)::work(…)"},
    {"<alloc::vec::Vec<Type> as core::clone::Clone>::clone", 49, "<alloc::vec::Vec<…> as core::clone::Clone>::clone"},
    {"a_function_with_a_very_long_name_that_ends_in_one", 21, "a_function…nds_in_one"},
    {"a_function_with_a_very_long_name_that_ends_in_two", 21, "a_function…nds_in_two"},
    {"grüße_aus_dem_süden", 9, "grüß…üden"},
    {"f()", 3, "f()"},
    {"unbalanced(((", 8, "unb…ed(…"},
};

static size_t columns_of(const char *text)
{
    size_t count = 0;
    for (; *text; text++)
        count += ((unsigned char)*text & 0xc0) != 0x80;
    return count;
}

START_TEST(by_hand)
{
    char text[512];
    const char *made = names_shorten(cases[_i].name, cases[_i].columns, text, sizeof text);
    ck_assert_str_eq(made, cases[_i].wanted);
}
END_TEST

// Whatever brackets and characters there are, in any room.
START_TEST(never_wider_than_it_may_be)
{
    static const char *const pieces[] = {"<", ">", "(", ")", "a", "::", "operator", "ü", "…", ", ", "->", "\xff"};
    srand(1);
    for (int round = 0; round < 20000; round++) {
        char name[400] = "";
        for (int i = rand() % 60; i > 0; i--)
            strcat(name, pieces[(size_t)rand() % (sizeof pieces / sizeof *pieces)]);
        size_t columns = 3 + (size_t)rand() % 40, size = 4 * columns + 8;
        char *text = malloc(size);
        ck_assert_ptr_eq(names_shorten(name, columns, text, size), text);
        ck_assert_msg(columns_of(text) <= columns, "%s: %s", name, text);
        ck_assert(strlen(text) < size);
        free(text);
    }
}
END_TEST

int main(void)
{
    TCase *tests = tcase_create("short_name");
    tcase_add_loop_test(tests, by_hand, 0, sizeof cases / sizeof *cases);
    tcase_add_test(tests, never_wider_than_it_may_be);
    Suite *suite = suite_create("short_name");
    suite_add_tcase(suite, tests);
    return run_suite(suite);
}
