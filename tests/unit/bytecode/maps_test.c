// SPDX-License-Identifier: Apache-2.0
// Maps: what is added is there, exactly, whoever adds it at the same time; what has no room is counted.
#include "bytecode/maps.h"

#include <pthread.h>
#include <stdlib.h>

#include "tests/support/run_suite.h"

enum { KINDS = QUT_PROBE_MAP_KIND_END, KEYED = QUT_PROBE_MAP_KIND_END, LARGE, ALL };

static struct {
    struct qut_probe_header header;
    struct qut_probe_map maps[ALL];
} image;
static struct bytecode_maps maps;

// One of each kind without a key, one with a key of two words, a large one.
static void make(void)
{
    image.header.map_count = ALL;
    for (uint32_t i = 0; i < KINDS; i++)
        image.maps[i] = (struct qut_probe_map){.kind = i};
    image.maps[QUT_PROBE_LHIST] = (struct qut_probe_map){.kind = QUT_PROBE_LHIST, .low = -10, .step = 5, .steps = 4};
    image.maps[KEYED] = (struct qut_probe_map){.kind = QUT_PROBE_SUM, .key_words = 2};
    image.maps[LARGE] =
        (struct qut_probe_map){.kind = QUT_PROBE_LHIST, .key_words = 32, .low = 0, .step = 1, .steps = 1000};
    const struct qut_probe_image parts = {.header = &image.header, .maps = image.maps};
    bytecode_maps_lay_out(&maps, &parts);
    maps.memory = calloc(maps.words, sizeof *maps.memory);
    ck_assert_ptr_nonnull(maps.memory);
}

static void end(void)
{
    free(maps.memory);
}

static int64_t number(uint32_t map)
{
    struct bytecode_slot slot;
    ck_assert(bytecode_maps_slot(&maps, map, 0, &slot));
    return bytecode_maps_number(&image.maps[map], slot.values[0]);
}

static void add(uint32_t map, int64_t value)
{
    bytecode_maps_aggregate(&maps, map, NULL, (uint64_t)value);
}

START_TEST(kinds_do_what_they_say)
{
    static const int64_t values[] = {5, -3, INT64_MIN, INT64_MAX, 0, 7};
    struct bytecode_slot slot;
    for (uint32_t map = 0; map < KINDS; map++)
        ck_assert(!bytecode_maps_slot(&maps, map, 0, &slot));
    for (size_t i = 0; i < sizeof values / sizeof *values; i++) {
        add(QUT_PROBE_COUNT, 1);
        for (uint32_t map = QUT_PROBE_SUM; map < KINDS; map++)
            add(map, values[i]);
    }
    ck_assert_int_eq(number(QUT_PROBE_COUNT), 6);
    ck_assert_int_eq(number(QUT_PROBE_SUM), 8);
    ck_assert_int_eq(number(QUT_PROBE_AVG), 8);
    ck_assert_int_eq(number(QUT_PROBE_MIN), INT64_MIN);
    ck_assert_int_eq(number(QUT_PROBE_MAX), INT64_MAX);
    ck_assert_int_eq(number(QUT_PROBE_VALUE), 7);
    ck_assert_uint_eq(bytecode_maps_lookup(&maps, QUT_PROBE_VALUE, NULL), 7);
    ck_assert(bytecode_maps_slot(&maps, QUT_PROBE_AVG, 0, &slot));
    ck_assert_uint_eq(slot.updates, 6);
    for (uint32_t map = 0; map < KINDS; map++) {
        bytecode_maps_clear(&maps, map);
        ck_assert(!bytecode_maps_slot(&maps, map, 0, &slot));
    }
    add(QUT_PROBE_MIN, 12);
    add(QUT_PROBE_MAX, -12);
    ck_assert_int_eq(number(QUT_PROBE_MIN), 12);
    ck_assert_int_eq(number(QUT_PROBE_MAX), -12);
    ck_assert_uint_eq(bytecode_maps_lookup(&maps, QUT_PROBE_VALUE, NULL), 0);
}
END_TEST

START_TEST(cells_are_where_they_begin)
{
    const struct qut_probe_map *powers = &image.maps[QUT_PROBE_HIST], *steps = &image.maps[QUT_PROBE_LHIST];
    for (unsigned power = 0; power < 63; power++) {
        const int64_t begin = INT64_C(1) << power;
        const uint32_t cell = bytecode_maps_cell(powers, begin);
        ck_assert_int_eq(bytecode_maps_cell_begin(powers, cell), begin);
        ck_assert_uint_eq(bytecode_maps_cell(powers, begin - 1), cell - 1);
    }
    ck_assert_uint_eq(bytecode_maps_cell(powers, -1), 0);
    ck_assert_uint_lt(bytecode_maps_cell(powers, INT64_MAX), qut_probe_cells(powers));
    static const struct {
        int64_t value;
        uint32_t cell;
    } cells[] = {{INT64_MIN, 0}, {-11, 0}, {-10, 1}, {-6, 1}, {-5, 2}, {9, 4}, {10, 5}, {INT64_MAX, 5}};
    for (size_t i = 0; i < sizeof cells / sizeof *cells; i++)
        ck_assert_uint_eq(bytecode_maps_cell(steps, cells[i].value), cells[i].cell);
    ck_assert_uint_eq(qut_probe_cells(steps), 6);
    ck_assert_uint_eq(qut_probe_value_words(steps), 7);
    ck_assert_int_eq(bytecode_maps_cell_begin(steps, 5), 10);
}
END_TEST

static void sums(uint32_t map, uint64_t *keys, uint64_t *sum, uint64_t *updates)
{
    *keys = *sum = *updates = 0;
    for (uint32_t i = 0; i < maps.maps[map].slot_count; i++) {
        struct bytecode_slot slot;
        if (!bytecode_maps_slot(&maps, map, i, &slot))
            continue;
        ++*keys;
        *updates += slot.updates;
        *sum += slot.values[0];
    }
}

START_TEST(what_has_no_room_is_counted)
{
    enum { COUNT = 2 * BYTECODE_MAP_SLOTS };
    uint64_t keys, sum, updates;
    for (uint64_t i = 0; i < COUNT; i++)
        bytecode_maps_aggregate(&maps, KEYED, (const uint64_t[]){i, i * i}, 3);
    sums(KEYED, &keys, &sum, &updates);
    ck_assert_uint_gt(keys, BYTECODE_MAP_SLOTS / 2);
    ck_assert_uint_eq(keys + bytecode_maps_lost(&maps, KEYED), COUNT);
    ck_assert_uint_eq(sum, 3 * keys);
    ck_assert_uint_lt(maps.maps[LARGE].slot_count * (uint64_t)maps.maps[LARGE].slot_words * 8,
                      BYTECODE_MAP_BYTES_MAX + 1);
    ck_assert_uint_ge(maps.maps[LARGE].slot_count, BYTECODE_MAP_LOOKS_MAX);
}
END_TEST

enum { THREADS = 4, ROUNDS = 20000, KEYS = 97 };

static void *add_many(void *unused)
{
    (void)unused;
    for (uint64_t i = 0; i < ROUNDS; i++) {
        bytecode_maps_aggregate(&maps, KEYED, (const uint64_t[]){i % KEYS, 1}, i);
        add(QUT_PROBE_HIST, (int64_t)i);
        add(QUT_PROBE_MAX, (int64_t)i);
        add(QUT_PROBE_MIN, -(int64_t)i);
    }
    return NULL;
}

START_TEST(threads_lose_nothing)
{
    pthread_t threads[THREADS];
    uint64_t keys, sum, updates;
    for (unsigned i = 0; i < THREADS; i++)
        ck_assert_int_eq(pthread_create(&threads[i], NULL, add_many, NULL), 0);
    for (unsigned i = 0; i < THREADS; i++)
        pthread_join(threads[i], NULL);
    sums(KEYED, &keys, &sum, &updates);
    ck_assert_uint_ge(keys, KEYS); // two slots for one key, where threads came with it at the same time
    ck_assert_uint_eq(updates, THREADS * ROUNDS);
    ck_assert_uint_eq(sum, (uint64_t)THREADS * ROUNDS * (ROUNDS - 1) / 2);
    ck_assert_uint_eq(bytecode_maps_lost(&maps, KEYED), 0);
    ck_assert_int_eq(number(QUT_PROBE_MAX), ROUNDS - 1);
    ck_assert_int_eq(number(QUT_PROBE_MIN), -(ROUNDS - 1));
    struct bytecode_slot slot;
    uint64_t in_cells = 0;
    ck_assert(bytecode_maps_slot(&maps, QUT_PROBE_HIST, 0, &slot));
    for (uint32_t i = 0; i < QUT_PROBE_HIST_CELLS; i++)
        in_cells += slot.values[i];
    ck_assert_uint_eq(in_cells, THREADS * ROUNDS);
    ck_assert_uint_eq(slot.values[QUT_PROBE_HIST_CELLS], (uint64_t)THREADS * ROUNDS * (ROUNDS - 1) / 2);
}
END_TEST

// Where a thread that came first has not got far, as where its code is fetched for the first time: a map without a key
// takes what others add all the same. With one the next slot does.
START_TEST(nobody_waits_for_who_came_first)
{
    enum { BEGUN = 1 };
    static const uint64_t key[] = {7, 1};
    for (uint32_t i = 0; i < ALL; i++)
        for (uint32_t k = 0; k < maps.maps[i].slot_count; k += 2)
            maps.memory[maps.maps[i].at + 1 + (uint64_t)k * maps.maps[i].slot_words] = BEGUN;
    add(QUT_PROBE_SUM, 5);
    add(QUT_PROBE_SUM, 6);
    ck_assert_int_eq(number(QUT_PROBE_SUM), 11);
    ck_assert_uint_eq(bytecode_maps_lost(&maps, QUT_PROBE_SUM), 0);
    bytecode_maps_aggregate(&maps, KEYED, key, 5);
    ck_assert_uint_eq(bytecode_maps_lookup(&maps, KEYED, key), 5);
    ck_assert_uint_eq(bytecode_maps_lost(&maps, KEYED), 0);
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("maps");
    TCase *all = tcase_create("all");
    tcase_add_checked_fixture(all, make, end);
    tcase_add_test(all, kinds_do_what_they_say);
    tcase_add_test(all, cells_are_where_they_begin);
    tcase_add_test(all, what_has_no_room_is_counted);
    tcase_add_test(all, threads_lose_nothing);
    tcase_add_test(all, nobody_waits_for_who_came_first);
    suite_add_tcase(suite, all);
    return run_suite(suite);
}
