// SPDX-License-Identifier: Apache-2.0
// Verification notices every kind of wrong rule: a table of a program, spoiled one field at a time.
// Usage: test_check_verify [FILE]
#include <check.h>
#include <stdlib.h>
#include <string.h>

#include "qutc/check/verify.h"
#include "qutc/qutc.h"
#include "tests/support/run_suite.h"

enum { JUDGES = CHECK_JUDGE_LIBDW | CHECK_JUDGE_LIBDWARF };

static const char *path;
static struct input_image *image;
static uint8_t *bytes;
static struct qut_table table;
static union qut_table_cell *standard; // a copy, to be spoiled
static struct qut_rule_cell **used;    // the cells that rows have, each once
static uint32_t used_count;
static struct check_verify_result result;

static void list_used(void)
{
    const struct qut_table_header *h = table.header;
    used = calloc(h->rule_count + h->cells.size / sizeof(union qut_table_cell) + h->leads.standard_count, sizeof *used);
    uint64_t pc = table.text_start, end, row_end;
    for (struct qut_rule rule; runtime_table_next_row(&table, &pc, &end, &rule); pc = end) {
        struct qut_rule_cell *cell = (void *)(uintptr_t)qut_table_cell(&table, pc, &row_end);
        uint32_t i = 0;
        while (cell && i < used_count && used[i] != cell)
            i++;
        if (cell && i == used_count)
            used[used_count++] = cell;
    }
}

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
    const size_t standard_bytes = table.header->leads.standard_count * sizeof *standard;
    standard = malloc(standard_bytes);
    ck_assert_ptr_nonnull(standard);
    memcpy(standard, table.cells[QUT_CELLS_STANDARD], standard_bytes);
    table.cells[QUT_CELLS_STANDARD] = standard;
    list_used();
}

static void teardown(void)
{
    free(used);
    free(standard);
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

// Evenly chosen cells with a frame rule: fills `chosen`, returns how many. Not the end of the stack, whose tracked
// registers are not compared, and not the cells that belong to a LONG one.
static unsigned choose_cells(struct qut_rule_cell *chosen[SPOILED_CELLS])
{
    unsigned count = 0;
    uint32_t step = used_count / SPOILED_CELLS + 1;
    uint32_t next = 0;
    for (uint32_t i = 0; i < used_count && count < SPOILED_CELLS; i++) {
        if (used[i]->form == QUT_CELL_FRAME && used[i]->slot[QUT_SLOT_RA] != QUT_SLOT_UNDEFINED && i >= next) {
            chosen[count++] = used[i];
            next = i + step;
        }
    }
    return count;
}

#define SPOIL(FIELD, VALUE)                                                                                            \
    do {                                                                                                               \
        struct qut_rule_cell *chosen[SPOILED_CELLS];                                                                   \
        unsigned count = choose_cells(chosen);                                                                         \
        ck_assert_uint_gt(count, 0);                                                                                   \
        for (unsigned i = 0; i < count; i++) {                                                                         \
            struct qut_rule_cell *cell = chosen[i], kept = *cell;                                                      \
            cell->FIELD = VALUE;                                                                                       \
            if (cell->FIELD == kept.FIELD)                                                                             \
                continue;                                                                                              \
            verify();                                                                                                  \
            ck_assert_msg(result.wrong > 0, "cell %u: " #FIELD, i);                                                    \
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
    struct qut_rule_cell *chosen[SPOILED_CELLS];
    ck_assert_uint_gt(choose_cells(chosen), 0);
    chosen[0]->form = QUT_CELL_REFUSED;
    chosen[0]->aux = QUT_REFUSED_BAD_PROGRAM;
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
