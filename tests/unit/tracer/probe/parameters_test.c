// SPDX-License-Identifier: Apache-2.0
// What is put into scripts in place of $1 to $9, and what is said where that cannot be.
#include <stdlib.h>
#include <string.h>

#include "tests/support/run_suite.h"
#include "tracer/probe/parameters.h"

static const char *const values[] = {"one", "\"2\""};

static const struct {
    const char *text;
    size_t count;
    const char *put;
} good[] = {
    {"", 0, ""},
    {"no $, no /", 0, NULL},
    {"a / b", 0, "a / b"},
    {"entry:$1", 1, "entry:one"},
    {"entry:${1}x$2$1", 2, "entry:onex\"2\"one"},
    {"\"$1 // $1\"", 1, "\"one // one\""},
    {"\"\\\"// $1\"", 1, "\"\\\"// one\""},
    {"// $3\n$1 // $4", 1, "// $3\none // $4"},
    {"/* $3 */$1/* $4", 1, "/* $3 */one/* $4"},
    {"/*/ $3 */ $1", 1, "/*/ $3 */ one"},
    {"${1:-7ms}${2:-8}", 1, "one8"},
    {"${9:-}x", 0, "x"},
    {"/$1/ { } /", 1, "/one/ { } /"},
};

START_TEST(parameters_are_put_in)
{
    for (size_t i = 0; i < sizeof good / sizeof *good; i++) {
        struct probe_diagnostic why;
        size_t length;
        char *put = probe_parameters_put(good[i].text, strlen(good[i].text), values, good[i].count, &length, &why);
        if (!good[i].put) {
            ck_assert_ptr_null(put);
            continue;
        }
        ck_assert_msg(put != NULL, "%s: %s", good[i].text, why.text);
        ck_assert_str_eq(put, good[i].put);
        ck_assert_uint_eq(length, strlen(put));
        free(put);
    }
}
END_TEST

static const struct {
    const char *text;
    size_t count;
    uint32_t at, length;
    const char *said;
} bad[] = {
    {"x $1", 0, 2, 2, "parameter 1 is missing"}, {"x ${2}", 1, 2, 4, "parameter 2 is missing"},
    {"$x", 0, 0, 2, "parameters are $1 to $9"},  {"{ $y = 1 }", 0, 2, 2, "what a script keeps is in a map: @y"},
    {"$0", 0, 0, 2, "parameters are $1 to $9"},  {"$", 0, 0, 2, "parameters are $1 to $9"},
    {"${1", 1, 0, 3, "expected ${1}"},           {"${1-2}", 1, 0, 3, "expected ${1}"},
    {"${1:-", 1, 0, 3, "expected ${1}"},         {"$1", 2, 0, 0, "no parameter $2, which is \"\"2\"\""},
};

START_TEST(mistakes_are_pointed_at)
{
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
        struct probe_diagnostic why;
        size_t length;
        ck_assert_ptr_null(probe_parameters_put(bad[i].text, strlen(bad[i].text), values, bad[i].count, &length, &why));
        ck_assert_msg(strstr(why.text, bad[i].said) != NULL, "%s: %s", bad[i].text, why.text);
        ck_assert_uint_eq(why.at, bad[i].at);
        ck_assert_uint_eq(why.length, bad[i].length);
    }
}
END_TEST

static Suite *parameters_suite(void)
{
    Suite *suite = suite_create("parameters");
    TCase *tcase = tcase_create("parameters");
    tcase_add_test(tcase, parameters_are_put_in);
    tcase_add_test(tcase, mistakes_are_pointed_at);
    suite_add_tcase(suite, tcase);
    return suite;
}

int main(void)
{
    return run_suite(parameters_suite());
}
