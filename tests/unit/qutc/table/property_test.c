// SPDX-License-Identifier: Apache-2.0
// Whatever the rows: at every pc, the table answers what the list of rows says.
#include <check.h>
#include <stdio.h>
#include <stdlib.h>

#include "tests/support/run_suite.h"
#include "tests/support/table_maker.h"

static const struct arch *const archs[] = {&arch_x86_64, &arch_aarch64, &arch_arm, &arch_x86, &arch_riscv64};

struct shape {
    uint32_t rows;
    uint32_t rules;
    uint32_t gap_units; // largest distance between two rows
    uint32_t unit_bytes;
    bool functions; // padded and similar to each other, as compilers make them
};

static uint32_t align_up(uint32_t value, uint32_t alignment)
{
    return (value + alignment - 1) & ~(alignment - 1);
}

// Rules drawn from a pool, the first ones more often.
static uint32_t pick(struct maker *m, const uint32_t *pool, uint32_t count)
{
    return pool[maker_random(m, 1 + maker_random(m, count))];
}

static void fill(struct maker *m, const struct shape *shape)
{
    uint32_t *pool = calloc(shape->rules, sizeof *pool);
    ck_assert_ptr_nonnull(pool);
    for (uint32_t i = 0; i < shape->rules; i++) {
        struct qut_rule rule = maker_random_rule(m);
        pool[i] = maker_rule(m, &rule);
    }
    uint32_t pc = maker_random(m, 3) ? maker_random(m, 5000) / shape->unit_bytes * shape->unit_bytes : 0;
    for (uint32_t i = 0; i < shape->rows; i++) {
        maker_row(m, pc, pick(m, pool, shape->rules));
        pc += shape->unit_bytes * (1 + maker_random(m, shape->gap_units));
        if (shape->functions && maker_random(m, 3) == 0) {
            uint32_t next = align_up(pc, 16u << maker_random(m, 3));
            if (next != pc)
                maker_row(m, pc, CFI_RULE_HOLE_ID);
            // A prologue that many functions share.
            static const uint8_t steps[] = {0, 4, 8, 16};
            for (uint32_t step = 0; step < sizeof steps; step++)
                maker_row(m, next + steps[step], pool[step % shape->rules]);
            pc = next + 16 + shape->unit_bytes * (1 + maker_random(m, shape->gap_units));
        }
    }
    m->text_size = align_up(pc, 4);
    if (maker_random(m, 2))
        maker_row(m, pc, CFI_RULE_HOLE_ID);
    free(pool);
}

// Every architecture, plain and small.
static void check_shape(const struct shape *shape, uint64_t seeds)
{
    for (uint64_t seed = 1; seed <= seeds; seed++) {
        for (size_t i = 0; i < sizeof archs / sizeof *archs; i++) {
            struct maker m;
            maker_init(&m, archs[i], seed * 10 + i);
            fill(&m, shape);
            for (int small = 0; small < 2; small++) {
                struct made_table made = maker_table(&m, small);
                ck_assert_msg(maker_agrees(&m, &made.table), "%s, seed %u, small %d", archs[i]->name, (unsigned)seed,
                              small);
                made_table_free(&made);
            }
            maker_free(&m);
        }
    }
}

START_TEST(few_rows)
{
    for (uint32_t rows = 1; rows < 8; rows++)
        check_shape(&(struct shape){rows, 3, 40, 4, false}, 4);
}
END_TEST

START_TEST(every_unit)
{
    for (uint32_t unit_bytes = 1; unit_bytes <= 4; unit_bytes *= 2)
        check_shape(&(struct shape){2000, 40, 12, unit_bytes, true}, 4);
}
END_TEST

START_TEST(dense_rows)
{
    for (uint32_t unit_bytes = 1; unit_bytes <= 4; unit_bytes *= 2)
        check_shape(&(struct shape){3000, 300, 2, unit_bytes, false}, 2);
    check_shape(&(struct shape){3000, 12, 1, 1, false}, 2);
}
END_TEST

START_TEST(sparse_rows)
{
    check_shape(&(struct shape){60, 20, 3000, 1, true}, 3);
    check_shape(&(struct shape){20, 20, 20000, 4, false}, 2);
}
END_TEST

START_TEST(many_rules)
{
    check_shape(&(struct shape){4000, 2000, 8, 1, true}, 2);
}
END_TEST

START_TEST(very_many_rules)
{
    check_shape(&(struct shape){60000, 40000, 4, 1, false}, 1);
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("any rows");
    TCase *tests = tcase_create("every pc");
    tcase_set_timeout(tests, 120);
    tcase_add_test(tests, few_rows);
    tcase_add_test(tests, every_unit);
    tcase_add_test(tests, dense_rows);
    tcase_add_test(tests, sparse_rows);
    tcase_add_test(tests, many_rules);
    tcase_add_test(tests, very_many_rules);
    suite_add_tcase(suite, tests);
    return run_suite(suite);
}
