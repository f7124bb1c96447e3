// SPDX-License-Identifier: Apache-2.0
// What is in a vector stays as it grows, and what cannot be leaves it alone.
#include "base/vector.h"

#include <stdint.h>
#include <stdlib.h>

#include "tests/support/run_suite.h"

struct pair {
    uint32_t left, right;
};

struct pairs {
    BASE_VECTOR(struct pair);
    bool is_more;
};

static void add_pairs(struct pairs *pairs, uint32_t count)
{
    for (uint32_t i = 0; i < count; i++) {
        struct pair *pair = BASE_ADD(pairs);
        if (!pair)
            ck_abort_msg("no memory");
        *pair = (struct pair){i, ~i};
    }
    ck_assert_uint_eq(pairs->count, count);
    uint32_t same = 0;
    while (same < count && pairs->items[same].left == same && pairs->items[same].right == ~same)
        same++;
    ck_assert_uint_eq(same, count);
}

START_TEST(items_stay_as_the_vector_grows)
{
    struct pairs pairs = {.is_more = true};
    add_pairs(&pairs, 100000);
    ck_assert(pairs.is_more);
    base_vector_free(&pairs.vector);
    ck_assert(!pairs.items && pairs.count == 0 && pairs.capacity == 0);
    add_pairs(&pairs, 3); // and it is one again
    base_vector_free(&pairs.vector);
}
END_TEST

START_TEST(growing_is_seldom)
{
    struct pairs pairs = {0};
    unsigned grown = 0;
    for (size_t i = 0, capacity = 0; i < 1 << 16; i++) {
        ck_assert(BASE_ADD(&pairs));
        grown += capacity != pairs.capacity;
        capacity = pairs.capacity;
    }
    ck_assert_uint_le(grown, 16);
    base_vector_free(&pairs.vector);
}
END_TEST

START_TEST(room_is_there_before_it_is_used)
{
    BASE_VECTOR(char) text = {0};
    ck_assert(BASE_RESERVE(&text, 0));
    ck_assert_ptr_null(text.items);
    ck_assert(BASE_RESERVE(&text, 1000));
    ck_assert(text.count == 0 && text.capacity >= 1000);
    const char *items = text.items;
    for (unsigned i = 0; i < 1000; i++)
        *BASE_ADD(&text) = (char)i;
    ck_assert_ptr_eq(items, text.items);
    ck_assert(BASE_RESERVE(&text, 1 << 20));
    ck_assert(text.capacity >= 1000 + (1 << 20));
    for (unsigned i = 0; i < 1000; i++)
        ck_assert(text.items[i] == (char)i);
    base_vector_free(&text.vector);
}
END_TEST

START_TEST(what_is_too_much_leaves_it_as_it_was)
{
    struct pairs pairs = {0};
    ck_assert(!BASE_RESERVE(&pairs, SIZE_MAX));
    ck_assert(!BASE_RESERVE(&pairs, SIZE_MAX / sizeof(struct pair) + 2));
    ck_assert(!BASE_RESERVE(&pairs, PTRDIFF_MAX / sizeof(struct pair) + 2));
    ck_assert(!pairs.items && pairs.count == 0 && pairs.capacity == 0);
    add_pairs(&pairs, 5);
    struct pairs before = pairs;
    ck_assert(!BASE_RESERVE(&pairs, SIZE_MAX));
    ck_assert(!BASE_RESERVE(&pairs, SIZE_MAX - 4));
    ck_assert(!BASE_RESERVE(&pairs, SIZE_MAX / 2));
    ck_assert(pairs.items == before.items && pairs.count == 5 && pairs.capacity == before.capacity);
    base_vector_free(&pairs.vector);
}
END_TEST

START_TEST(large_ones_grow_over_the_size_of_mappings)
{
    BASE_VECTOR(uint64_t) numbers = {0};
    for (uint64_t i = 0; i < (5 << 20) / sizeof i; i++) {
        if (!base_vector_reserve_large(&numbers.vector, 1, sizeof i))
            ck_abort_msg("no memory");
        *BASE_ADD(&numbers) = i * i;
    }
    uint64_t same = 0;
    while (same < numbers.count && numbers.items[same] == same * same)
        same++;
    ck_assert_uint_eq(same, numbers.count);
    ck_assert(!base_vector_reserve_large(&numbers.vector, SIZE_MAX / 2, sizeof *numbers.items));
    base_vector_free_large(&numbers.vector, sizeof *numbers.items);
    ck_assert(!numbers.items && numbers.count == 0 && numbers.capacity == 0);
}
END_TEST

int main(void)
{
    TCase *tcase = tcase_create("vector");
    tcase_add_test(tcase, items_stay_as_the_vector_grows);
    tcase_add_test(tcase, growing_is_seldom);
    tcase_add_test(tcase, room_is_there_before_it_is_used);
    tcase_add_test(tcase, what_is_too_much_leaves_it_as_it_was);
    tcase_add_test(tcase, large_ones_grow_over_the_size_of_mappings);
    Suite *suite = suite_create("vector");
    suite_add_tcase(suite, tcase);
    return run_suite(suite);
}
