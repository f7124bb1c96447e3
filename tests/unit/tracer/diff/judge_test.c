// SPDX-License-Identifier: Apache-2.0
// What is told of a change, against values reckoned by hand.
#include <math.h>

#include "tests/support/run_suite.h"
#include "tracer/diff/judge.h"

static void expect(double found, double wanted)
{
    ck_assert_msg(fabs(found - wanted) <= 1e-4 * fabs(wanted), "%.10g instead of %.10g", found, wanted);
}

// Chances 0.005, 0.012, 0.0239, 0.027, 0.2, times 5 / rank: 0.025, 0.03, 0.0398, 0.03375, 0.2; none is surer than what
// stands behind it. One that is not tested is no sixth.
START_TEST(chances_are_corrected)
{
    struct judge_item items[] = {
        {.chance = 0.2, .is_tested = true, .change = 1},    {.chance = 0.027, .is_tested = true, .change = -1},
        {.chance = 0, .is_tested = false, .change = 1},     {.chance = 0.005, .is_tested = true, .change = 1},
        {.chance = 0.0239, .is_tested = true, .change = 1}, {.chance = 0.012, .is_tested = true, .change = 1},
    };
    struct judge_item *all[] = {&items[0], &items[1], &items[2], &items[3], &items[4], &items[5]};
    ck_assert(diff_judge_correct(all, 6));
    expect(items[0].correct, 0.2);
    expect(items[1].correct, 0.03375);
    expect(items[2].correct, 1);
    expect(items[3].correct, 0.025);
    expect(items[4].correct, 0.03375);
    expect(items[5].correct, 0.03);
    ck_assert_int_eq(items[0].verdict, JUDGE_CANNOT_TELL);
    ck_assert_int_eq(items[1].verdict, JUDGE_LESS);
    ck_assert_int_eq(items[2].verdict, JUDGE_CANNOT_TELL);
    ck_assert_int_eq(items[3].verdict, JUDGE_MORE);
}
END_TEST

// 10, 11, 12 and 20, 21, 22: variance 1, t = 10 / sqrt(2 / 3) of 4 degrees of freedom.
START_TEST(measured_values_have_a_spread)
{
    const double a[] = {10, 11, 12}, b[] = {20, 21, 22};
    struct judge_item item = {.values = {a, b}}, *all[] = {&item};
    ck_assert(diff_judge(all, 1, (const size_t[]){3, 3}, JUDGE_MEASURED));
    expect(item.mean[0], 11);
    expect(item.mean[1], 21);
    expect(item.change, 10);
    expect(item.chance, 0.0002552167);
    expect(item.error, 2.776445 * sqrt(2.0 / 3));
    ck_assert(item.is_tested);
    // One a side: what it is is known, what it means is not.
    ck_assert(diff_judge(all, 1, (const size_t[]){1, 1}, JUDGE_MEASURED));
    ck_assert(!item.is_tested && isinf(item.error));
    // One, and several.
    ck_assert(diff_judge(all, 1, (const size_t[]){1, 3}, JUDGE_MEASURED));
    expect(item.change, 11);
    expect(item.chance, 0.0108404); // t = 11 / sqrt(4 / 3) of 2: 1 - t / sqrt(2 + t^2)
}
END_TEST

// Of 10000 samples 3000 and 3103; one recording a side: sampling's chance, and 1.96 of its deviations.
START_TEST(one_recording_goes_by_samples)
{
    const double a[] = {0.3}, b[] = {0.3103};
    struct judge_item item = {.values = {a, b}, .met = {3000, 3103}, .of = {10000, 10000}, .whole = {1, 1}};
    struct judge_item *all[] = {&item};
    ck_assert(diff_judge(all, 1, (const size_t[]){1, 1}, JUDGE_SHARES));
    expect(item.chance, 0.1137215);
    expect(item.error, 1.959964 * 0.00651205);
    ck_assert(item.is_tested);
    item.met[0] = 4;
    item.met[1] = 5;
    ck_assert(diff_judge(all, 1, (const size_t[]){1, 1}, JUDGE_SHARES));
    ck_assert(!item.is_tested);
}
END_TEST

// Samples in plenty make it sure, and recordings that differ by as much make it unsure again; where they hardly differ
// it is as sure as the samples, and no surer.
START_TEST(the_larger_chance_counts)
{
    const double far[] = {0.25, 0.30, 0.35, 0.26, 0.31, 0.36}, near[] = {0.30, 0.30, 0.30, 0.31, 0.31, 0.31};
    struct judge_item item = {.met = {300000, 310000}, .of = {1000000, 1000000}, .whole = {1, 1}};
    struct judge_item *all[] = {&item};
    item.values[0] = far;
    item.values[1] = far + 3;
    ck_assert(diff_judge(all, 1, (const size_t[]){3, 3}, JUDGE_SHARES));
    ck_assert(item.chance > 0.5);
    ck_assert(item.error > 0.1);
    item.values[0] = near;
    item.values[1] = near + 3;
    item.met[0] = 3000;
    item.met[1] = 3100;
    item.of[0] = item.of[1] = 10000;
    ck_assert(diff_judge(all, 1, (const size_t[]){3, 3}, JUDGE_SHARES));
    expect(item.chance, 0.124580); // z = 100 / sqrt(10000 * 0.305 * 0.695 * 2)
}
END_TEST

// Amounts: 3000 samples of 4 s, 3103 of 4.2 s, both 1 ms each: rates of 3000 and 3103.
START_TEST(amounts_are_rates)
{
    const double a[] = {3.0}, b[] = {3.103};
    struct judge_item item = {.values = {a, b}, .met = {3000, 3103}, .of = {4000, 4200}, .whole = {4, 4.2}};
    struct judge_item *all[] = {&item};
    ck_assert(diff_judge(all, 1, (const size_t[]){1, 1}, JUDGE_AMOUNTS));
    expect(item.change, 0.103);
    expect(item.chance, erfc(103 / sqrt(6103) / sqrt(2)));
}
END_TEST

int main(void)
{
    TCase *tests = tcase_create("judge");
    tcase_add_test(tests, chances_are_corrected);
    tcase_add_test(tests, measured_values_have_a_spread);
    tcase_add_test(tests, one_recording_goes_by_samples);
    tcase_add_test(tests, the_larger_chance_counts);
    tcase_add_test(tests, amounts_are_rates);
    Suite *suite = suite_create("judge");
    suite_add_tcase(suite, tests);
    return run_suite(suite);
}
