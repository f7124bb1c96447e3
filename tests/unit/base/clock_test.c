// SPDX-License-Identifier: Apache-2.0
#include <check.h>
#include <unistd.h>

#include "base/clock_inline.h"
#include "tests/support/run_suite.h"

START_TEST(counts_in_nanoseconds)
{
    uint64_t before_ns = base_clock_now_ns(), seconds = (uint64_t)time(NULL);
    usleep(2000);
    ck_assert_uint_ge(base_clock_now_ns() - before_ns, 2000000);
    ck_assert_uint_ge(base_clock_ns(CLOCK_REALTIME) / 1000000000u, seconds);
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("clock");
    TCase *tests = tcase_create("clock");
    suite_add_tcase(suite, tests);
    tcase_add_test(tests, counts_in_nanoseconds);
    return run_suite(suite);
}
