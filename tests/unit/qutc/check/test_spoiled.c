// SPDX-License-Identifier: Apache-2.0
// A table of a real library, the C library that this test runs with, with two percent of its rows changed: verification
// finds every one of them, and nothing else.
#include <check.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "formats/qut_table_code_inline.h"
#include "qutc/check/verify.h"
#include "qutc/qutc.h"
#include "tests/support/run_suite.h"

enum {
    JUDGES = CHECK_JUDGE_LIBDW | CHECK_JUDGE_LIBDWARF,
    ONE_IN = 50,                    // two percent
    BATCH = CHECK_FINDINGS_MAX / 2, // findings are listed up to a bound
};

// A row of the table and the byte that says its rule; NULL where that is not one byte.
struct row {
    uint64_t start, end;
    uint8_t *code;
    uint8_t kept;
};

static struct input_image *image;
static uint8_t *bytes;
static struct qut_table table;
static struct row *rows;
static size_t row_count;
static struct check_verify_result result;

static void own_libc_path(char *path, size_t path_size)
{
    FILE *maps = fopen("/proc/self/maps", "r");
    ck_assert_ptr_nonnull(maps);
    char line[512];
    snprintf(path, path_size, "/proc/self/exe"); // linked statically
    while (fgets(line, sizeof line, maps)) {
        char *name = strchr(line, '/');
        if (!name || !strstr(name, "/libc.so.6"))
            continue;
        name[strcspn(name, "\n")] = 0;
        snprintf(path, path_size, "%s", name);
        break;
    }
    fclose(maps);
}

static void list_rows(void)
{
    const struct qut_table_header *h = table.header;
    uint8_t *block = bytes + h->blocks.offset + 1;
    uint64_t blocks = (table.text_size_units + QUT_BLOCK_UNITS - 1) / QUT_BLOCK_UNITS;
    rows = calloc(h->row_count + 1, sizeof *rows);
    for (uint64_t b = 0; b < blocks; b++) {
        unsigned size = table.groups[b / QUT_GROUP_BLOCKS].block_bytes[b % QUT_GROUP_BLOCKS];
        struct qut_block_view view = qut_block_view(block, size);
        ck_assert(!(size & 1) || block[0] != 0); // no wide blocks in a C library
        for (unsigned i = 0; i < view.row_count; i++) {
            uint64_t start = table.text_start + ((b * QUT_BLOCK_UNITS + view.pcs[i]) << h->pc_shift);
            if (row_count)
                rows[row_count - 1].end = start;
            rows[row_count++] =
                (struct row){.start = start, .code = view.one_byte_codes ? block + view.row_count + i : NULL};
        }
        block += size;
    }
    rows[row_count - 1].end = table.text_start + h->text_size;
}

static void setup(void)
{
    char path[512];
    struct base_error error = {0};
    struct input_image_options image_options = {0};
    own_libc_path(path, sizeof path);
    ck_assert_int_eq(input_image_open(path, path, 0, 0, &image_options, &image, &error), 0);
    size_t size;
    ck_assert_int_eq(qutc_compile(image, NULL, &bytes, &size, NULL, &error), 0);
    ck_assert_int_eq(runtime_table_attach(&table, bytes, size, NULL), QUT_TABLE_OK);
    list_rows();
}

static void teardown(void)
{
    free(rows);
    free(bytes);
    input_image_close(image);
}

static const struct qut_rule_cell *cell_of(uint8_t lead)
{
    return &runtime_table_cells(&table, lead)->rule;
}

static bool is_plain(uint8_t lead)
{
    const struct qut_rule_cell *cell = cell_of(lead);
    return lead < table.header->leads.short_rules && cell->form == QUT_CELL_FRAME &&
           cell->flags >> QUT_CELL_ALIGN_SHIFT == QUT_CELL_NOT_PADDED &&
           cell->slot[QUT_SLOT_RA] != (int8_t)QUT_SLOT_UNDEFINED;
}

// Another rule, with another cfa.
static uint8_t other_lead(uint8_t lead)
{
    const struct qut_rule_cell *mine = cell_of(lead);
    for (uint8_t other = (uint8_t)(lead + 1); other != lead; other++)
        if (is_plain(other) && (cell_of(other)->cfa_words != mine->cfa_words || cell_of(other)->reg != mine->reg))
            return other;
    ck_abort_msg("all rules are alike");
    return lead;
}

static void verify(void)
{
    struct base_error error = {0};
    ck_assert_int_eq(check_verify(&table, image, JUDGES, &result, &error), 0);
    ck_assert_uint_eq(result.rows, result.exact + result.refused + result.wrong + result.disputed);
    ck_assert_uint_eq(result.disputed, 0);
}

static bool is_candidate(size_t i)
{
    return rows[i].code && is_plain(*rows[i].code) && rows[i].end > rows[i].start;
}

// Spoils up to `limit` candidates from *next on, each ONE_IN-th of them. Returns how many.
static size_t spoil(size_t *next, size_t limit, size_t *spoiled)
{
    size_t count = 0;
    for (; *next < row_count && count < limit; *next += ONE_IN) {
        while (*next < row_count && !is_candidate(*next))
            ++*next;
        if (*next >= row_count)
            break;
        struct row *row = &rows[*next];
        row->kept = *row->code;
        *row->code = other_lead(row->kept);
        spoiled[count++] = *next;
    }
    return count;
}

static void mend(const size_t *spoiled, size_t count)
{
    for (size_t i = 0; i < count; i++)
        *rows[spoiled[i]].code = rows[spoiled[i]].kept;
}

START_TEST(two_percent_at_once)
{
    size_t *spoiled = calloc(row_count, sizeof *spoiled);
    verify();
    ck_assert_uint_eq(result.wrong, 0);
    uint64_t exact = result.exact;
    size_t next = 0, count = spoil(&next, row_count, spoiled);
    ck_assert_uint_gt(count, row_count / 100);
    verify();
    // A row of the table can stand for the rows of two functions that touch.
    ck_assert_uint_ge(result.wrong, count);
    ck_assert_uint_le(result.wrong, count + count / 10);
    ck_assert_uint_eq(result.exact + result.wrong, exact);
    mend(spoiled, count);
    verify();
    ck_assert_uint_eq(result.wrong, 0);
    free(spoiled);
}
END_TEST

START_TEST(row_for_row)
{
    size_t spoiled[BATCH];
    for (size_t next = 0; next < row_count;) {
        size_t count = spoil(&next, BATCH, spoiled);
        verify();
        ck_assert_uint_eq(result.finding_count, result.wrong);
        size_t at = 0;
        for (size_t i = 0; i < count; i++) {
            const struct row *row = &rows[spoiled[i]];
            ck_assert_msg(at < result.finding_count && result.findings[at].pc == row->start,
                          "row at 0x%llx is wrong and was not found", (unsigned long long)row->start);
            while (at < result.finding_count && result.findings[at].pc < row->end)
                at++;
        }
        ck_assert_uint_eq(at, result.finding_count); // and nothing else
        mend(spoiled, count);
    }
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("spoiled");
    TCase *tests = tcase_create("spoiled");
    tcase_set_timeout(tests, 100);
    tcase_add_checked_fixture(tests, setup, teardown);
    tcase_add_test(tests, two_percent_at_once);
    tcase_add_test(tests, row_for_row);
    suite_add_tcase(suite, tests);
    return run_suite(suite);
}
