// SPDX-License-Identifier: Apache-2.0
// The standard cells are part of the table's format: tables in caches and bundles name them by number.
#include <check.h>
#include <string.h>

#include "formats/qut_standard_cells.h"
#include "formats/qut_table_check.h"
#include "tests/support/run_suite.h"

enum { ARCHITECTURES = 5 }; // that have some

static uint32_t cell_count(const union qut_table_cell *cells)
{
    return cells->rule.form == QUT_CELL_LONG ? QUT_LONG_CELLS : 1;
}

START_TEST(they_are_what_they_were)
{
    static const struct {
        enum qut_arch_id arch;
        uint32_t count; // of version 2; behind these there may be more
        uint64_t checksum;
    } all[] = {
        {QUT_ARCH_X86_64, 800, 0x629b2939ed57460d},  {QUT_ARCH_AARCH64, 800, 0xb8a717bd1abf480f},
        {QUT_ARCH_ARM, 800, 0x95c655784d5cb8eb},     {QUT_ARCH_X86, 800, 0xf76918da43e57142},
        {QUT_ARCH_RISCV64, 779, 0x8ad64c0a342ddf2b},
    };
    static_assert(sizeof all / sizeof *all == ARCHITECTURES, "one for each run");
    const struct qut_standard_cells cells = qut_standard_cells(all[_i].arch);
    ck_assert_uint_ge(cells.count, all[_i].count);
    const uint64_t checksum = qut_table_checksum(cells.cells, all[_i].count * sizeof *cells.cells);
    ck_assert_msg(checksum == all[_i].checksum,
                  "architecture %d: 0x%llx: tables that are in use would say something else", (int)all[_i].arch,
                  (unsigned long long)checksum);
}
END_TEST

START_TEST(each_is_there_once)
{
    const struct qut_standard_cells all = qut_standard_cells((enum qut_arch_id)_i);
    if (all.count == 0) // one that is new
        return;
    ck_assert_uint_eq(all.cells[0].rule.form, QUT_CELL_HOLE);
    for (uint32_t i = 1; i < all.count; i += cell_count(&all.cells[i])) {
        const uint32_t cells = cell_count(&all.cells[i]);
        ck_assert_uint_ne(all.cells[i].rule.form, QUT_CELL_HOLE);
        ck_assert_uint_lt(all.cells[i].rule.form, QUT_CELL_FORM_END);
        ck_assert_uint_le(i + cells, all.count);
        for (uint32_t k = 1; k < i; k += cell_count(&all.cells[k]))
            ck_assert_msg(memcmp(&all.cells[i], &all.cells[k], cells * sizeof *all.cells) != 0, "%u is %u again", i, k);
    }
}
END_TEST

START_TEST(an_unknown_architecture_has_none)
{
    ck_assert_uint_eq(qut_standard_cells(QUT_ARCH_NONE).count, 0);
    ck_assert_uint_eq(qut_standard_cells(QUT_ARCH_END).count, 0);
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("standard cells");
    TCase *tests = tcase_create("cells");
    tcase_add_loop_test(tests, they_are_what_they_were, 0, ARCHITECTURES);
    tcase_add_loop_test(tests, each_is_there_once, QUT_ARCH_NONE + 1, QUT_ARCH_END);
    tcase_add_test(tests, an_unknown_architecture_has_none);
    suite_add_tcase(suite, tests);
    return run_suite(suite);
}
