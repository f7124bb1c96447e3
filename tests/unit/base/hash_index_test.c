// SPDX-License-Identifier: Apache-2.0
#include "base/hash_index.h"

#include <stdlib.h>

#include "tests/support/run_suite.h"

static uint32_t find(const struct base_hash_index *index, const uint64_t *keys, uint64_t hash, uint64_t key)
{
    for (uint32_t step = 0, i; (i = base_hash_next(index, hash, &step)) != BASE_HASH_NONE;)
        if (keys[i] == key)
            return i;
    return BASE_HASH_NONE;
}

START_TEST(an_empty_one_has_nothing)
{
    struct base_hash_index index = {0};
    uint32_t step = 0;
    ck_assert_uint_eq(base_hash_next(&index, 0, &step), BASE_HASH_NONE);
    base_hash_clear(&index);
    base_hash_free(&index);
}
END_TEST

START_TEST(all_is_found_while_it_grows)
{
    enum { COUNT = 10000 };
    struct base_hash_index index = {0};
    uint64_t *keys = calloc(COUNT, sizeof *keys);
    ck_assert_ptr_nonnull(keys);
    for (uint32_t i = 0; i < COUNT; i++) {
        keys[i] = (uint64_t)i << 32;
        ck_assert_uint_eq(find(&index, keys, base_hash_word(0, keys[i]), keys[i]), BASE_HASH_NONE);
        ck_assert(base_hash_add(&index, base_hash_word(0, keys[i]), i));
    }
    for (uint32_t i = 0; i < COUNT; i++)
        ck_assert_uint_eq(find(&index, keys, base_hash_word(0, keys[i]), keys[i]), i);
    ck_assert_uint_eq(index.count, COUNT);
    ck_assert_uint_ge(index.mask, 2 * COUNT - 1);
    base_hash_clear(&index);
    ck_assert_uint_eq(find(&index, keys, base_hash_word(0, keys[0]), keys[0]), BASE_HASH_NONE);
    ck_assert(base_hash_add(&index, 1, 7));
    uint32_t step = 0;
    ck_assert_uint_eq(base_hash_next(&index, 1, &step), 7);
    free(keys);
    base_hash_free(&index);
}
END_TEST

START_TEST(the_same_hash_gives_all_of_them)
{
    enum { COUNT = 300 };
    struct base_hash_index index = {0};
    bool came[COUNT] = {false};
    const uint64_t hash = UINT64_MAX; // from the last slot on, and round
    for (uint32_t i = 0; i < COUNT; i++)
        ck_assert(base_hash_add(&index, hash, i));
    uint32_t step = 0;
    for (uint32_t i = 0; i < COUNT; i++) {
        uint32_t number = base_hash_next(&index, hash, &step);
        ck_assert_uint_lt(number, COUNT);
        ck_assert(!came[number]);
        came[number] = true;
    }
    ck_assert_uint_eq(base_hash_next(&index, hash, &step), BASE_HASH_NONE);
    base_hash_free(&index);
}
END_TEST

START_TEST(room_is_made_once)
{
    struct base_hash_index index = {0};
    ck_assert(base_hash_reserve(&index, 1000));
    const struct base_hash_slot *slots = index.slots;
    for (uint32_t i = 0; i < 1000; i++)
        ck_assert(base_hash_add(&index, i, i));
    ck_assert_ptr_eq(index.slots, slots);
    base_hash_free(&index);
}
END_TEST

START_TEST(what_it_cannot_hold_is_refused)
{
    struct base_hash_index index = {0};
    ck_assert(!base_hash_add(&index, 0, BASE_HASH_NONE));
    ck_assert(!base_hash_reserve(&index, ((size_t)1 << 30) + 1));
    ck_assert_uint_eq(index.count, 0);
    ck_assert(base_hash_add(&index, 0, BASE_HASH_NONE - 1));
    uint32_t step = 0;
    ck_assert_uint_eq(base_hash_next(&index, 0, &step), BASE_HASH_NONE - 1);
    base_hash_free(&index);
}
END_TEST

START_TEST(each_byte_counts)
{
    uint8_t bytes[32] = {0};
    const uint64_t zeros = base_hash_bytes(1, bytes, sizeof bytes);
    for (size_t i = 0; i < sizeof bytes; i++) {
        bytes[i] = 1;
        ck_assert_uint_ne(base_hash_bytes(1, bytes, sizeof bytes), zeros);
        bytes[i] = 0;
        ck_assert_uint_ne(base_hash_bytes(1, bytes, i), zeros);
    }
    ck_assert_uint_eq(base_hash_bytes(1, NULL, 0), 1);
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("hash_index");
    TCase *tcase = tcase_create("contract");
    tcase_add_test(tcase, an_empty_one_has_nothing);
    tcase_add_test(tcase, all_is_found_while_it_grows);
    tcase_add_test(tcase, the_same_hash_gives_all_of_them);
    tcase_add_test(tcase, room_is_made_once);
    tcase_add_test(tcase, what_it_cannot_hold_is_refused);
    tcase_add_test(tcase, each_byte_counts);
    suite_add_tcase(suite, tcase);
    return run_suite(suite);
}
