// SPDX-License-Identifier: Apache-2.0
#include <check.h>
#include <errno.h>

#include "base/error.h"
#include "tests/support/run_suite.h"

START_TEST(passes_another_one_on)
{
    struct base_error why = {0}, error = {0};
    char text[256];
    base_fail(&why, BASE_ERR_TRUNCATED, ".eh_frame", 0x1f0, "FDE length %d%%", 5);
    ck_assert_int_eq(base_fail_as(NULL, &why), -1);
    ck_assert_int_eq(base_fail_as(&error, &why), -1);
    ck_assert_str_eq(base_error_text(&error, text, sizeof text), "truncated: .eh_frame+0x1f0: FDE length 5%");
    const struct base_error later = {.reason = BASE_ERR_IO};
    ck_assert_int_eq(base_fail_as(&error, &later), -1);
    ck_assert_int_eq(error.reason, BASE_ERR_TRUNCATED); // the first one stays
}
END_TEST

START_TEST(tells_memory_from_the_system)
{
    struct base_error no_memory = {0}, other = {0};
    ck_assert_int_eq(base_fail_errno(&no_memory, ENOMEM), -1);
    ck_assert_int_eq(no_memory.reason, BASE_ERR_NO_MEMORY);
    ck_assert_int_eq(base_fail_errno(&other, ENOENT), -1);
    ck_assert_int_eq(other.reason, BASE_ERR_IO);
    ck_assert_str_eq(other.detail, "No such file or directory");
}
END_TEST

START_TEST(without_a_place)
{
    struct base_error error = {0};
    char text[256];
    base_fail(&error, BASE_ERR_NO_MEMORY, "", 7, "%d nodes", 3);
    ck_assert_str_eq(base_error_text(&error, text, sizeof text), "out of memory: 3 nodes");
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("error");
    TCase *tests = tcase_create("error");
    suite_add_tcase(suite, tests);
    tcase_add_test(tests, passes_another_one_on);
    tcase_add_test(tests, tells_memory_from_the_system);
    tcase_add_test(tests, without_a_place);
    return run_suite(suite);
}
