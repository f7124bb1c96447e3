// SPDX-License-Identifier: Apache-2.0
// Verification notices every kind of wrong rule: a table of a program, spoiled one field at a time.
// Usage: test_check_verify [FILE]
#include <check.h>
#include <stdlib.h>

#include "qutc/check/verify.h"
#include "qutc/qutc.h"
#include "tests/support/run_suite.h"

enum { JUDGES = CHECK_JUDGE_LIBDW | CHECK_JUDGE_LIBDWARF };

static const char *path;
static struct input_image *image;
static uint8_t *bytes;
static struct qut_table table;
static struct check_verify_result result;

static void setup(void)
{
    struct base_error error = {0};
    struct input_image_options image_options = {0};
    ck_assert_int_eq(input_image_open(path, "it", 0, 0, &image_options, &image, &error), 0);
    size_t size;
    struct qutc_compile_options options = {0};
    struct qutc_compile_stats stats;
    ck_assert_int_eq(qutc_compile(image, &options, &bytes, &size, &stats, &error), 0);
    uint64_t fault_offset;
    ck_assert_int_eq(runtime_table_attach(&table, bytes, size, &fault_offset), 0);
}

static void teardown(void)
{
    free(bytes);
    input_image_close(image);
}

static void verify(void)
{
    struct base_error error = {0};
    ck_assert_int_eq(check_verify(&table, image, JUDGES, &result, &error), 0);
    ck_assert_uint_eq(result.rows, result.exact + result.refused + result.wrong + result.disputed);
}

START_TEST(own_table_is_exact)
{
    verify();
    ck_assert_uint_gt(result.rows, 0);
    ck_assert_uint_eq(result.wrong, 0);
    ck_assert_uint_eq(result.disputed, 0);
    ck_assert_uint_eq(result.judges[0].rows, result.rows);
    ck_assert_uint_eq(result.judges[1].rows, result.rows);
}
END_TEST

enum { SPOILED_CELLS = 12 }; // a field; more take long and show no more

static struct qut_rule_cell *cell_at(uint32_t i)
{
    return &((union qut_table_cell *)(uintptr_t)&table.cells[i])->rule;
}

static uint32_t cell_count(void)
{
    return (uint32_t)(table.header->cells.size / sizeof(union qut_table_cell));
}

// Evenly chosen cells with a frame rule: fills `chosen`, returns how many. Not the end of the stack, whose tracked
// registers are not compared, and not the cells that belong to a LONG one.
static unsigned choose_cells(uint32_t chosen[SPOILED_CELLS])
{
    unsigned count = 0;
    uint32_t step = cell_count() / SPOILED_CELLS + 1;
    uint32_t next = 0;
    for (uint32_t i = 0; i < cell_count() && count < SPOILED_CELLS; i++) {
        const struct qut_rule_cell *cell = cell_at(i);
        if (cell->form == QUT_CELL_LONG) {
            i += QUT_LONG_CELLS - 1;
        } else if (cell->form == QUT_CELL_FRAME && cell->slot[QUT_SLOT_RA] != QUT_SLOT_UNDEFINED && i >= next) {
            chosen[count++] = i;
            next = i + step;
        }
    }
    return count;
}

#define SPOIL(FIELD, VALUE)                                                                                            \
    do {                                                                                                               \
        uint32_t chosen[SPOILED_CELLS];                                                                                \
        unsigned count = choose_cells(chosen);                                                                         \
        ck_assert_uint_gt(count, 0);                                                                                   \
        for (unsigned i = 0; i < count; i++) {                                                                         \
            struct qut_rule_cell *cell = cell_at(chosen[i]), kept = *cell;                                             \
            cell->FIELD = VALUE;                                                                                       \
            if (cell->FIELD == kept.FIELD)                                                                             \
                continue;                                                                                              \
            verify();                                                                                                  \
            ck_assert_msg(result.wrong > 0, "cell %u: " #FIELD, chosen[i]);                                            \
            ck_assert_uint_gt(result.finding_count, 0);                                                                \
            *cell = kept;                                                                                              \
        }                                                                                                              \
        verify();                                                                                                      \
        ck_assert_uint_eq(result.wrong, 0);                                                                            \
    } while (0)

START_TEST(spoiled_cfa)
{
    SPOIL(cfa_words, (int16_t)(kept.cfa_words + 1));
    SPOIL(reg, kept.reg ^ 1);
}
END_TEST

START_TEST(spoiled_slots)
{
    SPOIL(slot[QUT_SLOT_RA], (int8_t)(kept.slot[QUT_SLOT_RA] + 1));
    SPOIL(slot[1], (int8_t)(kept.slot[1] + 3));
    SPOIL(slot[2], QUT_SLOT_UNDEFINED);
}
END_TEST

START_TEST(spoiled_marks)
{
    SPOIL(flags, kept.flags ^ QUT_RULE_SIGNAL);
    SPOIL(flags, kept.flags ^ QUT_RULE_BODY_ONLY);
    SPOIL(form, QUT_CELL_HOLE);
}
END_TEST

START_TEST(refused_is_counted_by_reason)
{
    uint32_t chosen[SPOILED_CELLS];
    ck_assert_uint_gt(choose_cells(chosen), 0);
    cell_at(chosen[0])->form = QUT_CELL_REFUSED;
    cell_at(chosen[0])->aux = QUT_REFUSED_BAD_PROGRAM;
    verify();
    ck_assert_uint_gt(result.refused, 0);
    ck_assert_uint_eq(result.refused_by_reason[QUT_REFUSED_BAD_PROGRAM], result.refused);
}
END_TEST

START_TEST(no_judge_no_proof)
{
    struct base_error error = {0};
    ck_assert_int_eq(check_verify(&table, image, CHECK_JUDGE_READELF, &result, &error), 0);
    ck_assert_uint_eq(result.exact, 0);
    ck_assert_uint_gt(result.abstained, 0);
}
END_TEST

int main(int argc, char **argv)
{
    path = argc > 1 ? argv[1] : "/proc/self/exe";
    Suite *suite = suite_create("verify");
    TCase *tcase = tcase_create("all");
    tcase_add_checked_fixture(tcase, setup, teardown);
    tcase_set_timeout(tcase, 60);
    tcase_add_test(tcase, own_table_is_exact);
    tcase_add_test(tcase, spoiled_cfa);
    tcase_add_test(tcase, spoiled_slots);
    tcase_add_test(tcase, spoiled_marks);
    tcase_add_test(tcase, refused_is_counted_by_reason);
    tcase_add_test(tcase, no_judge_no_proof);
    suite_add_tcase(suite, tcase);
    return run_suite(suite);
}
