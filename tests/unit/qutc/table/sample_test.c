// SPDX-License-Identifier: Apache-2.0
// The bytes that tests/support carries are those that the writer makes today.
#include <check.h>
#include <stdlib.h>
#include <string.h>

#include "tests/support/run_suite.h"
#include "tests/support/table_sample.h"
#include "tests/support/table_sample_bytes.h"

START_TEST(the_runtimes_sample_is_fresh)
{
    struct maker m;
    sample_fill(&m);
    struct made_table made = maker_table(&m, true);
    ck_assert(maker_agrees(&m, &made.table));
    bool fresh = made.size == sizeof sample_table && memcmp(made.bytes, sample_table, made.size) == 0;
    ck_assert_msg(fresh, "make it anew: BUILD/tests/support/make_table_sample >tests/support/table_sample_bytes.h");
    ck_assert_uint_eq(m.rules.count * sizeof *m.rules.rules, sizeof sample_rules);
    ck_assert_int_eq(memcmp(m.rules.rules, sample_rules, sizeof sample_rules), 0);
    ck_assert_uint_eq(m.rows.count, sizeof sample_rows / sizeof *sample_rows);
    made_table_free(&made);
    maker_free(&m);
}
END_TEST

START_TEST(it_has_every_form)
{
    struct maker m;
    sample_fill(&m);
    struct made_table made = maker_table(&m, true);
    const struct qut_table_header *h = made.table.header;
    ck_assert_uint_gt(h->runs.size, 0);
    ck_assert_uint_gt(h->wides.size, 0);
    bool forms[QUT_CELL_FORM_END] = {false}, is_padded = false;
    const uint32_t count = h->cells.size / (uint32_t)sizeof(union qut_table_cell) + h->leads.standard_count;
    for (uint32_t id = 0; id < count; id++) {
        const struct qut_rule_cell *cell = &runtime_table_cells(&made.table, id)->rule;
        forms[cell->form] = true;
        is_padded |= cell->form == QUT_CELL_FRAME && cell->flags >> QUT_CELL_ALIGN_SHIFT;
        if (cell->form == QUT_CELL_LONG)
            id += QUT_LONG_CELLS - 1;
    }
    for (int form = 0; form < QUT_CELL_FORM_END; form++)
        ck_assert_msg(forms[form], "no cell of form %d", form);
    ck_assert(is_padded);
    made_table_free(&made);
    maker_free(&m);
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("sample table");
    TCase *tests = tcase_create("sample");
    tcase_add_test(tests, the_runtimes_sample_is_fresh);
    tcase_add_test(tests, it_has_every_form);
    suite_add_tcase(suite, tests);
    return run_suite(suite);
}
