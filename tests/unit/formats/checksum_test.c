// SPDX-License-Identifier: Apache-2.0
// A sum that is another one is told, in each build but those for fuzzing.
#include "formats/qut_checksum_inline.h"

#include <check.h>

#include "tests/support/run_suite.h"

START_TEST(sums_count)
{
    ck_assert(QUT_CHECKSUMS_COUNT);
    ck_assert(qut_checksum_agrees(7, 7));
    ck_assert(!qut_checksum_agrees(7, 8));
    ck_assert(!qut_checksum_agrees(0, UINT64_C(1) << 63));
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("checksum");
    TCase *tests = tcase_create("checksum");
    tcase_add_test(tests, sums_count);
    suite_add_tcase(suite, tests);
    return run_suite(suite);
}
