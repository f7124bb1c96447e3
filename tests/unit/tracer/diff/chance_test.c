// SPDX-License-Identifier: Apache-2.0
// Chances against values of printed tables, and against what can be counted by hand.
#include <math.h>

#include "tests/support/run_suite.h"
#include "tracer/diff/chance.h"

static void expect(double found, double wanted)
{
    ck_assert_msg(fabs(found - wanted) <= 1e-5 * fabs(wanted), "%.10g instead of %.10g", found, wanted);
}

START_TEST(normal_and_student)
{
    expect(diff_chance_normal(1.959964), 0.05);
    expect(diff_chance_normal(-3.290527), 0.001);
    expect(diff_chance_student(12.706205, 1), 0.05);
    expect(diff_chance_student(-31.599055, 2), 0.001);
    expect(diff_chance_student(2.228139, 10), 0.05);
    expect(diff_chance_student(1.959964, INFINITY), 0.05);
    expect(diff_chance_student(0, 3), 1);
    ck_assert(diff_chance_student(INFINITY, 3) <= 0);
    expect(diff_chance_bound(2), 4.302653);
    expect(diff_chance_bound(10), 2.228139);
    expect(diff_chance_bound(INFINITY), 1.959964);
}
END_TEST

START_TEST(shares)
{
    expect(diff_chance_shares(1, 10, 9, 10), 2 * 101.0 / 184756); // (C(10,0) C(10,10) + C(10,1) C(10,9)) / C(20,10)
    expect(diff_chance_shares(9, 10, 1, 10), 2 * 101.0 / 184756);
    expect(diff_chance_shares(3000, 10000, 3103, 10000), 0.1137215); // normal: z = 1.58171
    // Nearly all of both: what is beside it tells. 0 and 10 of 1000: C(1000, 10) / C(2000, 10) on one side.
    double once = 1;
    for (int i = 0; i < 10; i++)
        once *= (1000.0 - i) / (2000.0 - i);
    expect(diff_chance_shares(1000, 1000, 990, 1000), 2 * once);
    expect(diff_chance_shares(5, 100, 5, 100), 1);
    expect(diff_chance_shares(0, 100, 0, 100), 1);
    expect(diff_chance_shares(100, 100, 100, 100), 1);
    expect(diff_chance_shares(0, 0, 5, 10), 1);
}
END_TEST

START_TEST(rates)
{
    expect(diff_chance_rates(0, 1, 10, 1), 2 / 1024.0);
    expect(diff_chance_rates(10, 1, 0, 1), 2 / 1024.0);
    expect(diff_chance_rates(0, 1, 3, 3), 2 * 27.0 / 64 > 1 ? 1 : 2 * 27.0 / 64); // (3/4)^3
    expect(diff_chance_rates(5, 1, 15, 1), 2 * 21700.0 / 1048576);                // sum of C(20, 0..5) / 2^20
    expect(diff_chance_rates(400, 2, 500, 2), diff_chance_normal(100 / sqrt(900)));
    expect(diff_chance_rates(1, 0, 1, 1), 1);
}
END_TEST

// Where the exact way ends and the normal one begins, they agree.
START_TEST(both_ways_meet)
{
    const double exact = diff_chance_shares(170, 2000, 230, 2000),
                 normal = diff_chance_shares(170.5, 2000, 230.5, 2000);
    ck_assert(fabs(exact / normal - 1) < 0.25);
    const double few = diff_chance_rates(170, 1, 230, 1), many = diff_chance_rates(170.5, 1, 230.5, 1);
    ck_assert(fabs(few / many - 1) < 0.25);
}
END_TEST

START_TEST(gamma_derivatives)
{
    expect(diff_chance_digamma(1), -0.5772156649);
    expect(diff_chance_digamma(0.5), -1.9635100260);
    expect(diff_chance_trigamma(1), 1.6449340668);
    expect(diff_chance_trigamma(10), 0.1051663357);
    expect(diff_chance_trigamma_inverse(1.6449340668), 1);
    expect(diff_chance_trigamma_inverse(diff_chance_trigamma(0.01)), 0.01);
    expect(diff_chance_trigamma_inverse(diff_chance_trigamma(1e4)), 1e4);
}
END_TEST

int main(void)
{
    TCase *tests = tcase_create("chance");
    tcase_add_test(tests, normal_and_student);
    tcase_add_test(tests, shares);
    tcase_add_test(tests, rates);
    tcase_add_test(tests, both_ways_meet);
    tcase_add_test(tests, gamma_derivatives);
    Suite *suite = suite_create("chance");
    suite_add_tcase(suite, tests);
    return run_suite(suite);
}
