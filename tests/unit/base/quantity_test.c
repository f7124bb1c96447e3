// SPDX-License-Identifier: Apache-2.0
#include "base/quantity.h"

#include "tests/support/run_suite.h"

START_TEST(counts)
{
    ck_assert_str_eq(base_quantity_count(0).text, "0");
    ck_assert_str_eq(base_quantity_count(999).text, "999");
    ck_assert_str_eq(base_quantity_count(1000).text, "1,000");
    ck_assert_str_eq(base_quantity_count(123456).text, "123,456");
    ck_assert_str_eq(base_quantity_count(UINT64_MAX).text, "18,446,744,073,709,551,615");
}
END_TEST

START_TEST(bytes)
{
    ck_assert_str_eq(base_quantity_bytes(0).text, "0 bytes");
    ck_assert_str_eq(base_quantity_bytes(999).text, "999 bytes");
    ck_assert_str_eq(base_quantity_bytes(1000).text, "1.00 kB");
    ck_assert_str_eq(base_quantity_bytes(999499).text, "999 kB");
    ck_assert_str_eq(base_quantity_bytes(999500).text, "1.00 MB");
    ck_assert_str_eq(base_quantity_bytes(3400000).text, "3.40 MB");
    ck_assert_str_eq(base_quantity_bytes(UINT64_MAX).text, "18,446,744 TB");
}
END_TEST

// Rounding never leaves a fourth digit.
START_TEST(times)
{
    ck_assert_str_eq(base_quantity_time(850).text, "850 ns");
    ck_assert_str_eq(base_quantity_time(9994).text, "9.99 us");
    ck_assert_str_eq(base_quantity_time(9996).text, "10.0 us");
    ck_assert_str_eq(base_quantity_time(99960).text, "100 us");
    ck_assert_str_eq(base_quantity_time(1230000).text, "1.23 ms");
    ck_assert_str_eq(base_quantity_time(2952771072).text, "2.95 s");
    ck_assert_str_eq(base_quantity_time(3600000000000).text, "3,600 s");
    ck_assert_str_eq(base_quantity_time(UINT64_MAX).text, "18,446,744,074 s");
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("quantity");
    TCase *all = tcase_create("all");
    tcase_add_test(all, counts);
    tcase_add_test(all, bytes);
    tcase_add_test(all, times);
    suite_add_tcase(suite, all);
    return run_suite(suite);
}
