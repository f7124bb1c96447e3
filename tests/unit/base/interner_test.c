// SPDX-License-Identifier: Apache-2.0
#include "base/interner.h"

#include <stdio.h>
#include <stdlib.h>

#include "tests/support/run_suite.h"

START_TEST(zero_is_the_empty_string)
{
    struct base_interner strings = {0};
    ck_assert_str_eq(base_interner_text(&strings, 0), "");
    ck_assert_uint_eq(base_interner_add(&strings, "a"), 1);
    ck_assert_uint_eq(base_interner_add(&strings, ""), 0);
    ck_assert_uint_eq(base_interner_add(&strings, NULL), 0);
    ck_assert_uint_eq(strings.count, 2);
    ck_assert_str_eq(base_interner_text(&strings, 0), "");
    ck_assert_str_eq(base_interner_text(&strings, 2), "");
    base_interner_free(&strings);
}
END_TEST

START_TEST(each_is_kept_once_and_stays)
{
    enum { COUNT = 20000 };
    struct base_interner strings = {0};
    const char **texts = calloc(COUNT, sizeof *texts);
    char text[64];
    ck_assert_ptr_nonnull(texts);
    for (uint32_t i = 0; i < COUNT; i++) {
        snprintf(text, sizeof text, "a text with the number %u", i);
        ck_assert_uint_eq(base_interner_add(&strings, text), i + 1);
        texts[i] = base_interner_text(&strings, i + 1);
    }
    for (uint32_t i = 0; i < COUNT; i++) {
        snprintf(text, sizeof text, "a text with the number %u", i);
        ck_assert_uint_eq(base_interner_add(&strings, text), i + 1);
        ck_assert_ptr_eq(base_interner_text(&strings, i + 1), texts[i]);
        ck_assert_str_eq(texts[i], text);
    }
    ck_assert_uint_eq(strings.count, COUNT + 1);
    ck_assert(!strings.has_failed);
    free(texts);
    base_interner_free(&strings);
}
END_TEST

START_TEST(a_part_of_a_text)
{
    static const char text[] = "abcdefgh\0ijk";
    struct base_interner strings = {0};
    ck_assert_uint_eq(base_interner_add_part(&strings, text, 3), 1);
    ck_assert_uint_eq(base_interner_add(&strings, "abc"), 1);
    ck_assert_uint_eq(base_interner_add_part(&strings, text, 4), 2);
    // A NUL ends it.
    ck_assert_uint_eq(base_interner_add_part(&strings, text, sizeof text), 3);
    ck_assert_uint_eq(base_interner_add(&strings, "abcdefgh"), 3);
    ck_assert_uint_eq(base_interner_add_part(&strings, text, 0), 0);
    base_interner_free(&strings);
}
END_TEST

START_TEST(long_ones_too)
{
    enum { SIZE = 1 << 17 };
    struct base_interner strings = {0};
    char *text = malloc(SIZE);
    ck_assert_ptr_nonnull(text);
    memset(text, 'x', SIZE);
    static const size_t sizes[] = {1, (1 << 16) - 1, 1 << 16, (1 << 16) + 1, SIZE, 2};
    for (uint32_t i = 0; i < sizeof sizes / sizeof *sizes; i++)
        ck_assert_uint_eq(base_interner_add_part(&strings, text, sizes[i]), i + 1);
    for (uint32_t i = 0; i < sizeof sizes / sizeof *sizes; i++) {
        ck_assert_uint_eq(strlen(base_interner_text(&strings, i + 1)), sizes[i]);
        ck_assert_uint_eq(base_interner_add_part(&strings, text, sizes[i]), i + 1);
    }
    free(text);
    base_interner_free(&strings);
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("interner");
    TCase *tcase = tcase_create("contract");
    tcase_add_test(tcase, zero_is_the_empty_string);
    tcase_add_test(tcase, each_is_kept_once_and_stays);
    tcase_add_test(tcase, a_part_of_a_text);
    tcase_add_test(tcase, long_ones_too);
    suite_add_tcase(suite, tcase);
    return run_suite(suite);
}
