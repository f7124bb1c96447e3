// SPDX-License-Identifier: Apache-2.0
// Two sources that describe one text: the first wins wherever it says anything.
#include <check.h>
#include <stdlib.h>

#include "qutc/cfi/rule_set.h"
#include "qutc/table/row_merge.h"
#include "tests/support/run_suite.h"

static struct cfi_rule_set rules;
static struct cfi_row_list first, second;

static void setup(void)
{
    ck_assert_int_eq(cfi_rule_set_init(&rules, NULL), 0);
    ck_assert_int_eq(cfi_row_list_reserve(&first, 16, NULL), 0);
    ck_assert_int_eq(cfi_row_list_reserve(&second, 16, NULL), 0);
}

static void teardown(void)
{
    cfi_rule_set_free(&rules);
    cfi_row_list_free(&first);
    cfi_row_list_free(&second);
}

static uint32_t rule(int32_t cfa_bytes, uint8_t flags)
{
    struct qut_rule r = {.kind = QUT_RULE_FRAME, .flags = flags, .dex_pc_reg = QUT_NO_REGISTER};
    r.cfa.offset_bytes = cfa_bytes;
    return cfi_rule_set_intern(&rules, &r);
}

static void row(struct cfi_row_list *list, uint32_t pc_rel, uint32_t rule_id)
{
    list->rows[list->count++] = (struct cfi_row){pc_rel, rule_id};
}

static void expect(size_t count, const struct cfi_row *rows)
{
    ck_assert_int_eq(table_rows_fill_holes(&first, &second, NULL), 0);
    ck_assert_uint_eq(first.count, count);
    for (size_t i = 0; i < count; i++) {
        ck_assert_uint_eq(first.rows[i].pc_rel, rows[i].pc_rel);
        ck_assert_uint_eq(first.rows[i].rule_id, rows[i].rule_id);
    }
}

START_TEST(holes_are_filled)
{
    uint32_t a = rule(8, 0), b = rule(16, 0);
    row(&first, 0x10, a);
    row(&first, 0x20, CFI_RULE_HOLE_ID);
    row(&second, 0x00, b);
    row(&second, 0x18, CFI_RULE_HOLE_ID);
    row(&second, 0x30, b);
    row(&second, 0x40, CFI_RULE_HOLE_ID);
    expect(5, (struct cfi_row[]){{0x00, b}, {0x10, a}, {0x20, CFI_RULE_HOLE_ID}, {0x30, b}, {0x40, CFI_RULE_HOLE_ID}});
}
END_TEST

START_TEST(a_refusal_wins_too)
{
    struct qut_rule refused = cfi_rule_refused(QUT_REFUSED_CFA_EXPRESSION);
    uint32_t a = cfi_rule_set_intern(&rules, &refused), b = rule(16, 0);
    row(&first, 0x10, a);
    row(&first, 0x20, CFI_RULE_HOLE_ID);
    row(&second, 0x00, b);
    row(&second, 0x30, CFI_RULE_HOLE_ID);
    expect(4, (struct cfi_row[]){{0x00, b}, {0x10, a}, {0x20, b}, {0x30, CFI_RULE_HOLE_ID}});
}
END_TEST

START_TEST(what_resumes_inside_a_function_keeps_its_mark)
{
    // It is true in the function's body only, wherever the frame programs before it end.
    uint32_t a = rule(8, 0), body = rule(16, QUT_RULE_BODY_ONLY);
    row(&first, 0x10, a);
    row(&first, 0x20, CFI_RULE_HOLE_ID);
    row(&second, 0x00, body);
    row(&second, 0x30, body);
    row(&second, 0x40, CFI_RULE_HOLE_ID);
    expect(5, (struct cfi_row[]){{0x00, body}, {0x10, a}, {0x20, body}, {0x30, body}, {0x40, CFI_RULE_HOLE_ID}});
}
END_TEST

static bool is_body_only(const struct qut_rule *rule)
{
    return rule->flags & QUT_RULE_BODY_ONLY;
}

START_TEST(what_yields_is_replaced_where_there_is_more)
{
    uint32_t a = rule(8, 0), body = rule(16, QUT_RULE_BODY_ONLY), exact = rule(24, 0);
    row(&first, 0x00, a);
    row(&first, 0x10, body);
    row(&first, 0x40, CFI_RULE_HOLE_ID);
    row(&second, 0x08, exact);
    row(&second, 0x20, CFI_RULE_HOLE_ID);
    row(&second, 0x30, exact);
    struct base_error error = {0};
    ck_assert_int_eq(table_rows_refine(&first, &second, &rules, is_body_only, &error), 0);
    const struct cfi_row expected[] = {{0x00, a}, {0x10, exact}, {0x20, body}, {0x30, exact}};
    ck_assert_uint_eq(first.count, 4);
    for (size_t i = 0; i < first.count; i++) {
        ck_assert_uint_eq(first.rows[i].pc_rel, expected[i].pc_rel);
        ck_assert_uint_eq(first.rows[i].rule_id, expected[i].rule_id);
    }
}
END_TEST

static uint32_t random_state = 1;

static uint32_t below(uint32_t bound)
{
    random_state = random_state * 1103515245 + 12345;
    return (random_state >> 8) % bound;
}

enum { TEXT = 256 };

// Ascending in [from, end), and a hole behind it; each rule another than the one before.
static void draw(struct cfi_row_list *list, uint32_t from, uint32_t end, uint32_t distance, const uint32_t *ids,
                 uint32_t id_count)
{
    list->count = 0;
    for (uint32_t pc = from + below(distance); pc < end; pc += 1 + below(distance))
        cfi_row_list_put(list, pc, ids[below(id_count)]);
    if (list->count && end < TEXT)
        cfi_row_list_put(list, end, CFI_RULE_HOLE_ID);
}

// Long stretches of one list lie in one hole of the other, or all of the second in a few rows of the first.
START_TEST(each_pc_has_the_rule_of_the_first_that_has_one)
{
    const uint32_t ids[] = {CFI_RULE_HOLE_ID, rule(8, 0), rule(16, 0), rule(24, QUT_RULE_BODY_ONLY)};
    uint32_t wanted[TEXT];
    ck_assert_int_eq(cfi_row_list_reserve(&second, TEXT, NULL), 0);
    for (int round = 0; round < 1000; round++) {
        const uint32_t from = round % 4 < 2 ? 0 : below(TEXT),
                       end = round % 4 < 2 ? TEXT : from + 1 + below(TEXT - from);
        ck_assert_int_eq(cfi_row_list_reserve(&first, TEXT, NULL), 0); // a merged list has its own room
        draw(&first, 0, TEXT, 1 + below(32), ids, 4);
        draw(&second, from, end, 1 + below(round % 4 < 2 ? 200 : 8), ids, 3);
        for (uint32_t pc = 0; pc < TEXT; pc++) {
            uint32_t stated = cfi_row_list_at(&first, pc), filled = cfi_row_list_at(&second, pc);
            bool yields = round % 2 && is_body_only(&rules.rules[stated]) && filled != CFI_RULE_HOLE_ID;
            wanted[pc] = stated == CFI_RULE_HOLE_ID || yields ? filled : stated;
        }
        ck_assert_int_eq(round % 2 ? table_rows_refine(&first, &second, &rules, is_body_only, NULL)
                                   : table_rows_fill_holes(&first, &second, NULL),
                         0);
        uint32_t wrong = 0; // an assertion for each would take seconds
        for (uint32_t pc = 0; pc < TEXT; pc++)
            wrong += cfi_row_list_at(&first, pc) != wanted[pc];
        for (size_t i = 1; i < first.count; i++) {
            wrong += first.rows[i - 1].pc_rel >= first.rows[i].pc_rel;
            wrong += first.rows[i].rule_id == CFI_RULE_HOLE_ID && first.rows[i - 1].rule_id == CFI_RULE_HOLE_ID;
        }
        ck_assert_uint_eq(wrong, 0);
    }
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("merge");
    TCase *tests = tcase_create("merge");
    tcase_add_checked_fixture(tests, setup, teardown);
    tcase_add_test(tests, holes_are_filled);
    tcase_add_test(tests, a_refusal_wins_too);
    tcase_add_test(tests, what_resumes_inside_a_function_keeps_its_mark);
    tcase_add_test(tests, what_yields_is_replaced_where_there_is_more);
    tcase_add_test(tests, each_pc_has_the_rule_of_the_first_that_has_one);
    suite_add_tcase(suite, tests);
    return run_suite(suite);
}
