// SPDX-License-Identifier: Apache-2.0
// The forms that a table has for crowded blocks, many rules, padding and large frames: each is met, and each answers.
#include <check.h>
#include <stdlib.h>
#include <string.h>

#include "formats/qut_standard_cells.h"
#include "formats/qut_table_code_inline.h"
#include "qutc/table/cell.h"
#include "tests/support/run_suite.h"
#include "tests/support/table_maker.h"

static uint32_t plain(struct maker *m, int32_t cfa_bytes)
{
    struct qut_rule rule = maker_plain_rule(m, cfa_bytes);
    return maker_rule(m, &rule);
}

// Plain and small tables both agree with the rows. Returns the plain one.
static struct made_table agreed(const struct maker *m)
{
    struct made_table small = maker_table(m, true);
    ck_assert(maker_agrees(m, &small.table));
    made_table_free(&small);
    struct made_table made = maker_table(m, false);
    ck_assert(maker_agrees(m, &made.table));
    return made;
}

static void finish(struct maker *m, struct made_table *made)
{
    made_table_free(made);
    maker_free(m);
}

START_TEST(one_row_at_the_text_start)
{
    struct maker m;
    maker_init(&m, &arch_x86_64, 1);
    maker_row(&m, 0, plain(&m, 8));
    m.text_size = 1;
    struct made_table made = agreed(&m);
    ck_assert_uint_eq(made.table.header->text_size, 1);
    ck_assert_uint_eq(made.table.header->row_count, 1);
    finish(&m, &made);
}
END_TEST

START_TEST(crowded_blocks_are_wide)
{
    // 127 rows of one-byte codes fill 254 bytes; the next one does not fit.
    for (uint32_t rows = 126; rows <= 256; rows += rows < 130 ? 1 : 63) {
        struct maker m;
        maker_init(&m, &arch_x86_64, 1);
        uint32_t ids[2] = {plain(&m, 8), plain(&m, 16)};
        for (uint32_t i = 0; i < rows; i++)
            maker_row(&m, 256 + i, ids[i % 2]);
        maker_row(&m, 600, CFI_RULE_HOLE_ID);
        m.text_size = 2000;
        struct made_table made = agreed(&m);
        ck_assert_msg((made.table.header->wides.size != 0) == (rows > 127), "%u rows: %u bytes of wide blocks", rows,
                      made.table.header->wides.size);
        finish(&m, &made);
    }
}
END_TEST

// Frames of so many sizes in a row: of few, standard cells say some.
static struct made_table frames(struct maker *m, uint32_t first_words, uint32_t rules)
{
    maker_init(m, &arch_x86_64, 1);
    for (uint32_t k = 0; k < rules; k++)
        maker_row(m, 3 * k, plain(m, 8 * (int32_t)(first_words + k)));
    m->text_size = 3 * rules;
    return agreed(m);
}

START_TEST(codes_of_every_length)
{
    enum { FAR_WORDS = 5000 }; // no standard cell has so large a frame
    static const struct {
        uint32_t rules;
        uint8_t short_own, long_rule_leads;
    } all[] = {{250, 250, 0}, {400, 252, 2}, {24000, 160, 94}, {27000, 154, 100}};
    for (size_t i = 0; i < sizeof all / sizeof *all; i++) {
        struct maker m;
        struct made_table made = frames(&m, FAR_WORDS, all[i].rules);
        const struct qut_table_header *h = made.table.header;
        ck_assert_uint_eq(h->leads.short_own, all[i].short_own);
        ck_assert_uint_eq(h->leads.standard_count, 1); // the hole
        ck_assert_uint_eq(h->leads.short_rules, 1 + all[i].short_own);
        ck_assert_uint_eq(h->leads.long_rule_leads, all[i].long_rule_leads);
        ck_assert_uint_eq(h->cells.size, all[i].rules * sizeof(union qut_table_cell));
        ck_assert_uint_eq(h->rule_count, all[i].rules);
        finish(&m, &made);
    }
}
END_TEST

START_TEST(standard_cells_are_not_held)
{
    struct maker m;
    struct made_table made = frames(&m, 1, 12);
    ck_assert_uint_eq(made.table.header->cells.size, 0);
    ck_assert_uint_eq(made.table.header->rule_count, 12);
    finish(&m, &made);
}
END_TEST

// The last of the standard cells that say nothing but a frame's size: a code of one byte for it is not to be had
// without a cell of the table's own.
static int32_t rare_frame_bytes(const struct maker *m)
{
    const struct qut_rule plain_rule = maker_plain_rule(m, 8);
    union qut_table_cell wanted[QUT_LONG_CELLS];
    table_cell_make(m->arch, &plain_rule, wanted);
    const struct qut_standard_cells standard = qut_standard_cells(m->arch->id);
    for (uint32_t i = standard.count - 1; i > QUT_LEAD_WIDE; i--) {
        wanted->rule.cfa_words = standard.cells[i].rule.cfa_words;
        if (memcmp(wanted, &standard.cells[i], sizeof *wanted) == 0)
            return wanted->rule.cfa_words * m->arch->word_bytes;
    }
    ck_abort_msg("there is none");
    return 0;
}

START_TEST(a_standard_cell_that_is_used_often_is_held)
{
    for (uint32_t uses = 8; uses <= 64; uses *= 8) {
        struct maker m;
        maker_init(&m, &arch_x86_64, 1);
        const uint32_t frame = plain(&m, rare_frame_bytes(&m));
        for (uint32_t i = 0; i < uses; i++) {
            maker_row(&m, 20 * i, frame);
            maker_row(&m, 20 * i + 7, CFI_RULE_HOLE_ID);
        }
        m.text_size = 20 * uses;
        struct made_table made = agreed(&m);
        const bool is_held = made.table.header->cells.size != 0;
        ck_assert_msg(is_held == (uses == 64), "%u uses, %u bytes of cells", uses, made.table.header->cells.size);
        finish(&m, &made);
    }
}
END_TEST

// A function of some bytes at each multiple of `alignment`, padding behind it.
static struct made_table padded(struct maker *m, const struct arch *arch, uint32_t alignment, uint32_t function)
{
    maker_init(m, arch, 1);
    uint32_t id = plain(m, 16), step = (function + alignment - 1) / alignment * alignment;
    for (uint32_t i = 0; i < 40; i++) {
        maker_row(m, i * step, id);
        maker_row(m, i * step + function, CFI_RULE_HOLE_ID);
    }
    m->text_size = 40 * step;
    return agreed(m);
}

START_TEST(padding_at_every_alignment)
{
    for (uint32_t alignment = 16; alignment <= 64; alignment *= 2) {
        for (uint32_t function = alignment / 2 + 4; function < 3 * alignment; function += 4) {
            if (function % alignment == 0)
                continue;
            struct maker m;
            struct made_table made = padded(&m, &arch_aarch64, alignment, function);
            // The rule, and the rule with padding before it: all of them standard ones, or one is the table's own.
            ck_assert_uint_le(made.table.header->cells.size, sizeof(union qut_table_cell));
            ck_assert_uint_eq(made.table.header->row_count, 79); // the last hole is outside
            finish(&m, &made);
        }
    }
}
END_TEST

START_TEST(padding_on_bytes)
{
    for (uint32_t function = 1; function < 64; function++) {
        struct maker m;
        struct made_table made = padded(&m, &arch_x86_64, 64, function);
        finish(&m, &made);
    }
}
END_TEST

START_TEST(long_rules)
{
    struct maker m;
    maker_init(&m, &arch_x86_64, 7);
    for (uint32_t i = 0; i < 200; i++) {
        struct qut_rule rule = maker_plain_rule(&m, 8);
        rule.tracked[0] = (struct qut_reg_rule){.how = QUT_REG_AT_REG, .reg = 10, .offset_bytes = (int32_t)i};
        maker_row(&m, 5 * i, maker_rule(&m, &rule));
    }
    m.text_size = 1000;
    struct made_table made = agreed(&m);
    ck_assert_uint_eq(made.table.header->cells.size, 200 * QUT_LONG_CELLS * sizeof(union qut_table_cell));
    finish(&m, &made);
}
END_TEST

START_TEST(large_frames_stay_short)
{
    // stp x29, x30, [sp, -N]!: the slots are far from the cfa, but close to each other.
    struct maker m;
    maker_init(&m, &arch_aarch64, 1);
    uint32_t pc = 0;
    for (int32_t bytes = 16; bytes < 32768 * 8; bytes += 1040, pc += 4) {
        struct qut_rule rule = maker_plain_rule(&m, bytes);
        rule.tracked[0] = (struct qut_reg_rule){.how = QUT_REG_AT_CFA, .offset_bytes = -bytes};
        rule.ra = (struct qut_reg_rule){.how = QUT_REG_AT_CFA, .offset_bytes = 8 - bytes};
        rule.tracked[1] = (struct qut_reg_rule){.how = QUT_REG_AT_CFA, .offset_bytes = 16 - bytes};
        maker_row(&m, pc, maker_rule(&m, &rule));
    }
    m.text_size = pc;
    struct made_table made = agreed(&m);
    ck_assert_uint_eq(made.table.header->cells.size, pc / 4 * sizeof(union qut_table_cell));
    finish(&m, &made);
}
END_TEST

START_TEST(a_slot_at_the_cfa_itself)
{
    struct maker m;
    maker_init(&m, &arch_aarch64, 1);
    struct qut_rule rule = maker_plain_rule(&m, 16);
    rule.ra = (struct qut_reg_rule){.how = QUT_REG_AT_CFA};
    rule.tracked[0] = (struct qut_reg_rule){.how = QUT_REG_AT_CFA, .offset_bytes = 8};
    maker_row(&m, 0, maker_rule(&m, &rule));
    m.text_size = 64;
    struct made_table made = agreed(&m);
    finish(&m, &made);
}
END_TEST

START_TEST(equal_neighbours_stay_apart)
{
    // Tables of whole functions: where the rule's row begins, the function does.
    struct maker m;
    maker_init(&m, &arch_arm, 1);
    struct qut_rule rule = maker_plain_rule(&m, 8);
    rule.flags = QUT_RULE_BODY_ONLY;
    uint32_t id = maker_rule(&m, &rule);
    static const uint32_t starts[] = {0, 10, 200, 800, 804, 5000};
    const size_t count = sizeof starts / sizeof *starts;
    for (size_t i = 0; i < count; i++)
        maker_row(&m, starts[i], id);
    m.text_size = 6000;
    struct made_table made = agreed(&m);
    for (size_t i = 0; i < count; i++) {
        uint64_t pc = MAKER_TEXT + (uint64_t)starts[i], end;
        uint64_t next = MAKER_TEXT + (uint64_t)(i + 1 < count ? starts[i + 1] : m.text_size);
        struct qut_rule found;
        ck_assert(runtime_table_next_row(&made.table, &pc, &end, &found));
        ck_assert_uint_le(end, next);
        for (pc = MAKER_TEXT + (uint64_t)starts[i]; pc < next; pc += 2)
            ck_assert_uint_eq(runtime_table_row_start(&made.table, pc), MAKER_TEXT + (uint64_t)starts[i]);
    }
    finish(&m, &made);
}
END_TEST

START_TEST(empty_blocks_carry_their_rule)
{
    // More blocks without rows than a group has.
    for (uint32_t unit_bytes = 1; unit_bytes <= 4; unit_bytes *= 2) {
        struct maker m;
        maker_init(&m, &arch_aarch64, 1);
        uint32_t first = plain(&m, 16), second = plain(&m, 32);
        uint32_t far = 256 * QUT_GROUP_BLOCKS * unit_bytes * 3 + unit_bytes;
        maker_row(&m, unit_bytes, first);
        maker_row(&m, far, second);
        maker_row(&m, 2 * far, CFI_RULE_HOLE_ID);
        maker_row(&m, 3 * far, first);
        m.text_size = 3 * far + 4;
        struct made_table made = agreed(&m);
        ck_assert_uint_eq(1u << made.table.header->pc_shift, unit_bytes);
        finish(&m, &made);
    }
}
END_TEST

START_TEST(nothing_but_a_hole_is_small)
{
    for (uint32_t start = 0; start < 3000; start += 999) {
        struct maker m;
        maker_init(&m, &arch_x86_64, 1);
        maker_row(&m, start, CFI_RULE_HOLE_ID);
        m.text_size = 2 << 20;
        struct made_table made = agreed(&m);
        ck_assert_uint_le(made.size, 512);
        ck_assert_uint_eq(made.table.header->covered_bytes + made.table.header->refused_bytes, 0);
        finish(&m, &made);
    }
}
END_TEST

// _init and _fini, and between them code that nothing describes: the index of blocks is all there is.
START_TEST(a_large_gap_is_counted_in_large_units)
{
    for (uint32_t unit_bytes = 1; unit_bytes <= 4; unit_bytes *= 2) {
        struct maker m;
        maker_init(&m, &arch_x86_64, 1);
        struct qut_rule refused = cfi_rule_refused(QUT_REFUSED_CFA_EXPRESSION);
        uint32_t last = 2 << 20, id = plain(&m, 8), other = maker_rule(&m, &refused);
        maker_row(&m, 0, id);
        maker_row(&m, 20, CFI_RULE_HOLE_ID);
        maker_row(&m, last, other);
        maker_row(&m, last + 16 + unit_bytes, CFI_RULE_HOLE_ID);
        m.text_size = 3 << 20;
        struct made_table made = agreed(&m);
        uint32_t group_bytes = QUT_GROUP_BLOCKS * QUT_BLOCK_UNITS * unit_bytes;
        ck_assert_uint_eq(1u << made.table.header->pc_shift, unit_bytes);
        ck_assert_uint_le(made.size, (last / group_bytes + 1) * sizeof(struct qut_table_group) + 512);
        finish(&m, &made);
    }
}
END_TEST

START_TEST(text_of_any_size)
{
    for (uint32_t size = 1; size < 600; size++) {
        struct maker m;
        maker_init(&m, &arch_x86_64, 1);
        maker_row(&m, size / 3, plain(&m, 8));
        maker_row(&m, size, CFI_RULE_HOLE_ID);
        m.text_size = size + 100;
        struct made_table made = agreed(&m);
        ck_assert_uint_eq(made.table.header->text_size, size);
        finish(&m, &made);
    }
}
END_TEST

START_TEST(small_tables_share_runs)
{
    struct maker m;
    maker_init(&m, &arch_x86_64, 1);
    static const uint8_t steps[] = {0, 1, 4, 40, 41, 44};
    for (uint32_t i = 0; i < 300; i++)
        for (uint32_t step = 0; step < sizeof steps; step++)
            maker_row(&m, 100 * i + steps[step], plain(&m, 8 * (int32_t)(1 + step)));
    m.text_size = 30000;
    struct made_table made = agreed(&m), small = maker_table(&m, true);
    ck_assert_uint_gt(small.table.header->runs.size, 0);
    ck_assert_uint_lt(small.size, made.size);
    made_table_free(&small);
    finish(&m, &made);
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("shapes of tables");
    TCase *tests = tcase_create("shapes");
    tcase_set_timeout(tests, 60);
    tcase_add_test(tests, one_row_at_the_text_start);
    tcase_add_test(tests, crowded_blocks_are_wide);
    tcase_add_test(tests, codes_of_every_length);
    tcase_add_test(tests, standard_cells_are_not_held);
    tcase_add_test(tests, a_standard_cell_that_is_used_often_is_held);
    tcase_add_test(tests, padding_at_every_alignment);
    tcase_add_test(tests, padding_on_bytes);
    tcase_add_test(tests, long_rules);
    tcase_add_test(tests, large_frames_stay_short);
    tcase_add_test(tests, a_slot_at_the_cfa_itself);
    tcase_add_test(tests, equal_neighbours_stay_apart);
    tcase_add_test(tests, empty_blocks_carry_their_rule);
    tcase_add_test(tests, nothing_but_a_hole_is_small);
    tcase_add_test(tests, a_large_gap_is_counted_in_large_units);
    tcase_add_test(tests, text_of_any_size);
    tcase_add_test(tests, small_tables_share_runs);
    suite_add_tcase(suite, tests);
    return run_suite(suite);
}
