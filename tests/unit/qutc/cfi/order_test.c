// SPDX-License-Identifier: Apache-2.0
// The order in which frame records are run: ascending by start, of equal ones the later first, however many sequences
// take turns in the section.
#include <check.h>
#include <stdlib.h>

#include "qutc/cfi/frame_section.h"

enum { COUNT_MAX = 3000 };

static struct cfi_fde fdes[COUNT_MAX];

static int by_start(const void *a, const void *b)
{
    const uint32_t one = *(const uint32_t *)a, other = *(const uint32_t *)b;
    const uint32_t start = fdes[one].start_rel, other_start = fdes[other].start_rel;
    return start != other_start ? (start > other_start) - (start < other_start) : (one < other) - (one > other);
}

static void is_as_sorted(size_t count)
{
    static uint32_t expected[COUNT_MAX];
    uint32_t *order;
    bool is_sorted = true;
    for (uint32_t i = 0; i < count; i++)
        expected[i] = i;
    qsort(expected, count, sizeof *expected, by_start);
    for (uint32_t i = 0; i < count; i++)
        is_sorted = is_sorted && expected[i] == i;
    ck_assert_int_eq(cfi_fdes_order(fdes, count, &order), 0);
    ck_assert_int_eq(order == NULL, is_sorted);
    for (size_t i = 0; order && i < count; i++)
        ck_assert_uint_eq(order[i], expected[i]);
    free(order);
}

// As linkers lay them out, with so many sections that each object file has code in. Now and then two records start at
// the same address.
START_TEST(sequences)
{
    const unsigned sequence_count = (unsigned)_i;
    srand(sequence_count);
    for (int round = 0; round < 30; round++) {
        uint32_t ends[16];
        const size_t count = 1 + (size_t)rand() % COUNT_MAX;
        unsigned sequence = 0;
        for (unsigned i = 0; i < sequence_count; i++)
            ends[i] = i * 10000u;
        for (size_t i = 0; i < count; i++) {
            if (rand() % 8 == 0)
                sequence = (unsigned)rand() % sequence_count;
            ends[sequence] += (uint32_t)(rand() % (round % 2 ? 12 : 3));
            fdes[i].start_rel = ends[sequence];
        }
        is_as_sorted(count);
    }
}
END_TEST

START_TEST(anyhow)
{
    srand(7);
    for (int round = 0; round < 30; round++) {
        const size_t count = (size_t)rand() % COUNT_MAX;
        for (size_t i = 0; i < count; i++)
            fdes[i].start_rel = (uint32_t)rand() % (round % 2 ? UINT32_C(0x7fffffff) : 500);
        is_as_sorted(count);
    }
    for (uint32_t i = 0; i < COUNT_MAX; i++)
        fdes[i].start_rel = COUNT_MAX - i;
    is_as_sorted(COUNT_MAX);
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("order");
    TCase *all = tcase_create("all");
    tcase_add_loop_test(all, sequences, 1, 13);
    tcase_add_test(all, anyhow);
    suite_add_tcase(suite, all);
    SRunner *runner = srunner_create(suite);
    srunner_run_all(runner, CK_ENV);
    const int failed = srunner_ntests_failed(runner);
    srunner_free(runner);
    return failed != 0;
}
