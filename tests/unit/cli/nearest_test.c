// SPDX-License-Identifier: Apache-2.0
#include "cli/nearest.h"

#include <string.h>

#include "tests/support/run_suite.h"

static const char *const words[] = {"record", "report", "stack", "info", "export", NULL};

static const char *nearest_to(const char *typed)
{
    struct cli_nearest nearest;
    cli_nearest_begin(&nearest, typed, strlen(typed));
    for (size_t i = 0; words[i]; i++)
        cli_nearest_offer(&nearest, words[i]);
    return nearest.word;
}

START_TEST(one_change)
{
    ck_assert_pstr_eq(nearest_to("recrd"), "record");   // left out
    ck_assert_pstr_eq(nearest_to("sttack"), "stack");   // put in
    ck_assert_pstr_eq(nearest_to("inva"), NULL);        // two of four letters: another word
    ck_assert_pstr_eq(nearest_to("invo"), "info");      // replaced
    ck_assert_pstr_eq(nearest_to("reprot"), "report");  // swapped
    ck_assert_pstr_eq(nearest_to("recrod"), "record");  // swapped, not two replaced: report is no nearer
    ck_assert_pstr_eq(nearest_to("exports"), "export"); // beside report, which is two away
}
END_TEST

START_TEST(two_changes)
{
    ck_assert_pstr_eq(nearest_to("stcak"), "stack");
    ck_assert_pstr_eq(nearest_to("satkc"), "stack");   // of five letters, two swaps
    ck_assert_pstr_eq(nearest_to("STACK"), "stack");   // capitals are no change
    ck_assert_pstr_eq(nearest_to("rexort"), "report"); // as far from export, which begins otherwise
    ck_assert_pstr_eq(nearest_to("exxort"), "export");
}
END_TEST

START_TEST(none)
{
    ck_assert_pstr_eq(nearest_to(""), NULL);
    ck_assert_pstr_eq(nearest_to("x"), NULL);
    ck_assert_pstr_eq(nearest_to("frobnicate"), NULL);
    ck_assert_pstr_eq(nearest_to("0123456789012345678901234567890123456789"), NULL);
}
END_TEST

// Only so much of what was typed is looked at, and longer words are no match, nor read beyond.
START_TEST(part)
{
    struct cli_nearest nearest;
    cli_nearest_begin(&nearest, "stak,info", 4);
    cli_nearest_offer(&nearest, "0123456789012345678901234567890123456789");
    cli_nearest_offer(&nearest, "stack");
    ck_assert_pstr_eq(nearest.word, "stack");
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("nearest");
    TCase *all = tcase_create("all");
    tcase_add_test(all, one_change);
    tcase_add_test(all, two_changes);
    tcase_add_test(all, none);
    tcase_add_test(all, part);
    suite_add_tcase(suite, all);
    return run_suite(suite);
}
