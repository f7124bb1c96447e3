// SPDX-License-Identifier: Apache-2.0
// From an image's index to rows: entries, their table, and where functions begin and end.
#include <check.h>

#include "qutc/cfi/exidx.h"
#include "qutc/qutc.h"
#include "tests/support/arm_elf.h"
#include "tests/unit/qutc/cfi/exidx/suites.h"

enum {
    TEXT = 0x10000,
    TEXT_END = 0x10100,
    SP = 13,
    LEAF = 0x80b0b0b0,        // finish
    MOVE_4 = 0x8000b0b0,      // vsp = vsp + 4
    MOVE_8 = 0x8001b0b0,      // vsp = vsp + 8
    REFUSE_WORD = 0x808000b0, // refuse to unwind
    ROWS_MAX = 16,
};

struct reading {
    struct input_image *image;
    struct cfi_rule_set rules;
    struct cfi_row_list rows;
    struct cfi_exidx_counts counts;
};

static struct reading read_cut(const struct arm_elf *elf, size_t cut_bytes)
{
    struct reading r = {.image = arm_elf_open(elf)};
    struct input_frame_section section = *arm_elf_index(r.image);
    struct base_error error = {.reason = BASE_OK};
    uint64_t text_end = elf->text[1].end > elf->text[0].end ? elf->text[1].end : elf->text[0].end;
    section.bytes.size -= cut_bytes;
    ck_assert_int_eq(cfi_rule_set_init(&r.rules, &error), 0);
    ck_assert_int_eq(
        cfi_exidx_read(r.image, &section, elf->text[0].start, text_end, &r.rules, &r.rows, &r.counts, &error), 0);
    return r;
}

static void reading_free(struct reading *r)
{
    cfi_row_list_free(&r->rows);
    cfi_rule_set_free(&r->rules);
    input_image_close(r->image);
}

// A row, in short: HOLE, REFUSED with its reason, or FRAME with cfa = sp + offset.
struct short_row {
    uint32_t pc_rel;
    enum qut_rule_kind kind;
    int detail;
};
#define HOLE_AT(PC)                                                                                                    \
    {                                                                                                                  \
        (PC), QUT_RULE_HOLE, 0                                                                                         \
    }
#define REFUSED_AT(PC, REASON)                                                                                         \
    {                                                                                                                  \
        (PC), QUT_RULE_REFUSED, QUT_REFUSED_##REASON                                                                   \
    }
#define FRAME_AT(PC, OFFSET)                                                                                           \
    {                                                                                                                  \
        (PC), QUT_RULE_FRAME, (OFFSET)                                                                                 \
    }

static void assert_rows(const struct reading *r, const struct short_row *expected, size_t count)
{
    for (size_t i = 0; i < count && i < r->rows.count; i++) {
        const struct qut_rule *rule = &r->rules.rules[r->rows.rows[i].rule_id];
        ck_assert_msg(r->rows.rows[i].pc_rel == expected[i].pc_rel, "row %zu at %#x", i, r->rows.rows[i].pc_rel);
        ck_assert_msg(rule->kind == expected[i].kind, "row %zu has kind %d", i, rule->kind);
        if (rule->kind == QUT_RULE_REFUSED)
            ck_assert_msg(rule->reason == expected[i].detail, "row %zu has reason %d", i, rule->reason);
        if (rule->kind == QUT_RULE_FRAME) {
            ck_assert_int_eq(rule->cfa.reg, SP);
            ck_assert_int_eq(rule->cfa.offset_bytes, expected[i].detail);
            ck_assert(rule->flags & QUT_RULE_BODY_ONLY);
        }
    }
    ck_assert_uint_eq(r->rows.count, count);
}

#define ASSERT_ROWS(READING, ...)                                                                                      \
    do {                                                                                                               \
        const struct short_row expected_rows[] = {__VA_ARGS__};                                                        \
        assert_rows((READING), expected_rows, sizeof expected_rows / sizeof *expected_rows);                           \
    } while (0)

START_TEST(functions_end_where_the_next_begins)
{
    struct arm_elf elf = arm_elf(TEXT, TEXT_END);
    arm_elf_inline_entry(&elf, TEXT + 0x20, LEAF);
    arm_elf_inline_entry(&elf, TEXT + 0x40, MOVE_8);
    arm_elf_inline_entry(&elf, TEXT + 0x50, ARM_ELF_CANTUNWIND);
    arm_elf_inline_entry(&elf, TEXT + 0x60, MOVE_4);
    struct reading r = read_cut(&elf, 0);
    ASSERT_ROWS(&r, HOLE_AT(0), FRAME_AT(0x20, 0), FRAME_AT(0x40, 8), REFUSED_AT(0x50, CANTUNWIND), FRAME_AT(0x60, 4));
    ck_assert_uint_eq(r.counts.functions, 4);
    ck_assert_uint_eq(r.counts.cantunwind, 1);
    ck_assert_uint_eq(r.counts.refused, 0);
    ck_assert_uint_eq(r.counts.out_of_order, 0);
    reading_free(&r);
}
END_TEST

START_TEST(an_entry_at_the_very_start_leaves_no_hole)
{
    struct arm_elf elf = arm_elf(TEXT, TEXT_END);
    arm_elf_inline_entry(&elf, TEXT, LEAF);
    struct reading r = read_cut(&elf, 0);
    ASSERT_ROWS(&r, FRAME_AT(0, 0));
    reading_free(&r);
}
END_TEST

START_TEST(equal_neighbours_keep_their_starts_only_with_a_frame)
{
    struct arm_elf elf = arm_elf(TEXT, TEXT_END);
    arm_elf_inline_entry(&elf, TEXT, MOVE_8);
    arm_elf_inline_entry(&elf, TEXT + 0x10, MOVE_8);
    arm_elf_inline_entry(&elf, TEXT + 0x20, ARM_ELF_CANTUNWIND);
    arm_elf_inline_entry(&elf, TEXT + 0x30, REFUSE_WORD);
    arm_elf_inline_entry(&elf, TEXT + 0x40, MOVE_8);
    struct reading r = read_cut(&elf, 0);
    ASSERT_ROWS(&r, FRAME_AT(0, 8), FRAME_AT(0x10, 8), REFUSED_AT(0x20, CANTUNWIND), FRAME_AT(0x40, 8));
    ck_assert_uint_eq(r.rows.rows[0].rule_id, r.rows.rows[1].rule_id);
    ck_assert_uint_eq(r.counts.cantunwind, 2);
    reading_free(&r);
}
END_TEST

START_TEST(functions_end_with_their_executable_range)
{
    struct arm_elf elf = arm_elf(TEXT, TEXT + 0x80);
    elf.text[1] = (struct input_range){TEXT + 0x200, TEXT + 0x280};
    arm_elf_inline_entry(&elf, TEXT, MOVE_8);
    arm_elf_inline_entry(&elf, TEXT + 0x240, MOVE_4);
    struct reading r = read_cut(&elf, 0);
    ASSERT_ROWS(&r, FRAME_AT(0, 8), HOLE_AT(0x80), FRAME_AT(0x240, 4));
    reading_free(&r);
}
END_TEST

START_TEST(closing_entry_at_the_end_holds_nowhere)
{
    struct arm_elf elf = arm_elf(TEXT, TEXT + 0x80);
    elf.text[1] = (struct input_range){TEXT + 0x200, TEXT + 0x280};
    arm_elf_inline_entry(&elf, TEXT, MOVE_8);
    arm_elf_inline_entry(&elf, TEXT + 0x80, ARM_ELF_CANTUNWIND);
    arm_elf_inline_entry(&elf, TEXT + 0x200, MOVE_4);
    arm_elf_inline_entry(&elf, TEXT + 0x280, ARM_ELF_CANTUNWIND);
    struct reading r = read_cut(&elf, 0);
    ASSERT_ROWS(&r, FRAME_AT(0, 8), HOLE_AT(0x80), FRAME_AT(0x200, 4));
    ck_assert_uint_eq(r.counts.out_of_order, 0);
    reading_free(&r);
}
END_TEST

// Nothing but the entries that close segments. A table of holes would be 32 bytes for each 14 KiB of the code.
START_TEST(an_index_of_no_code_makes_no_table)
{
    struct arm_elf elf = arm_elf(TEXT, TEXT + 0x80);
    elf.text[1] = (struct input_range){TEXT + 0x200, TEXT + 0x280};
    arm_elf_inline_entry(&elf, TEXT + 0x80, MOVE_8);
    arm_elf_inline_entry(&elf, TEXT + 0x280, ARM_ELF_CANTUNWIND);
    struct input_image *image = arm_elf_open(&elf);
    struct base_error error = {.reason = BASE_OK};
    uint8_t *table;
    size_t size;
    ck_assert_int_eq(qutc_compile(image, NULL, &table, &size, NULL, &error), -1);
    ck_assert_int_eq(error.reason, BASE_ERR_NO_UNWIND);
    ck_assert_ptr_null(table);
    input_image_close(image);
}
END_TEST

START_TEST(last_entry_of_an_address_counts)
{
    struct arm_elf elf = arm_elf(TEXT, TEXT_END);
    arm_elf_inline_entry(&elf, TEXT, MOVE_8);
    arm_elf_inline_entry(&elf, TEXT + 0x10, ARM_ELF_CANTUNWIND);
    arm_elf_inline_entry(&elf, TEXT + 0x10, MOVE_4);
    struct reading r = read_cut(&elf, 0);
    ASSERT_ROWS(&r, FRAME_AT(0, 8), FRAME_AT(0x10, 4));
    ck_assert_uint_eq(r.counts.out_of_order, 0);
    reading_free(&r);
}
END_TEST

START_TEST(thumb_bit_is_no_part_of_the_address)
{
    struct arm_elf elf = arm_elf(TEXT, TEXT_END + 1);
    arm_elf_inline_entry(&elf, TEXT + 1, MOVE_8);
    arm_elf_inline_entry(&elf, TEXT + 0x13, MOVE_4);
    arm_elf_inline_entry(&elf, TEXT_END + 1, ARM_ELF_CANTUNWIND);
    struct reading r = read_cut(&elf, 0);
    ASSERT_ROWS(&r, FRAME_AT(0, 8), FRAME_AT(0x12, 4));
    ck_assert_uint_eq(r.counts.out_of_order, 0);
    reading_free(&r);
}
END_TEST

// One address too low, one too high, one outside the text: each takes out itself alone.
START_TEST(wrong_addresses_do_not_touch_their_neighbours)
{
    struct arm_elf elf = arm_elf(TEXT, TEXT_END);
    arm_elf_inline_entry(&elf, TEXT + 0x10, MOVE_4);
    arm_elf_inline_entry(&elf, TEXT + 0xf0, ARM_ELF_CANTUNWIND); // too high
    arm_elf_inline_entry(&elf, TEXT + 0x20, MOVE_8);
    arm_elf_inline_entry(&elf, TEXT + 0x08, ARM_ELF_CANTUNWIND); // too low
    arm_elf_inline_entry(&elf, TEXT + 0x30, LEAF);
    arm_elf_inline_entry(&elf, TEXT_END + 0x10, ARM_ELF_CANTUNWIND); // outside
    arm_elf_inline_entry(&elf, TEXT - 0x10, ARM_ELF_CANTUNWIND);     // outside
    arm_elf_inline_entry(&elf, TEXT + 0x40, MOVE_4);
    struct reading r = read_cut(&elf, 0);
    ASSERT_ROWS(&r, HOLE_AT(0), FRAME_AT(0x10, 4), FRAME_AT(0x20, 8), FRAME_AT(0x30, 0), FRAME_AT(0x40, 4));
    ck_assert_uint_eq(r.counts.functions, 4);
    ck_assert_uint_eq(r.counts.out_of_order, 4);
    ck_assert_uint_eq(r.counts.cantunwind, 0);
    reading_free(&r);
}
END_TEST

START_TEST(offsets_wrap_at_32_bits)
{
    struct arm_elf elf = arm_elf(0xfffff000, 0xfffff100);
    elf.exidx_vaddr = 0x00010000;
    elf.extab_vaddr = 0xffff0000;
    arm_elf_inline_entry(&elf, 0xfffff000, MOVE_4);
    arm_elf_table_entry(&elf, 0xfffff010, arm_elf_extab_word(&elf, MOVE_8));
    size_t generic = arm_elf_extab_routine(&elf, 0xfffff021);
    arm_elf_extab_word(&elf, 0x0002b0b0);
    arm_elf_table_entry(&elf, 0xfffff020, generic);
    struct reading r = read_cut(&elf, 0);
    ASSERT_ROWS(&r, FRAME_AT(0, 4), FRAME_AT(0x10, 8), FRAME_AT(0x20, 12));
    reading_free(&r);
}
END_TEST

START_TEST(table_entries_of_every_form)
{
    struct arm_elf elf = arm_elf(TEXT, TEXT_END);
    arm_elf_table_entry(&elf, TEXT, arm_elf_extab_word(&elf, 0x80000102)); // 4 + 8 + 12
    size_t lu16 = arm_elf_extab_word(&elf, 0x81010001);                    // 4 + 8 ...
    arm_elf_extab_word(&elf, 0x02030405);                                  // + 12 + 16 + 20 + 24
    arm_elf_table_entry(&elf, TEXT + 0x10, lu16);
    size_t lu32 = arm_elf_extab_word(&elf, 0x82020000); // 4 + 4 ...
    arm_elf_extab_word(&elf, 0x00000000);               // + 4 * 4
    arm_elf_extab_word(&elf, 0x0001b03f);               // + 4 + 8
    arm_elf_table_entry(&elf, TEXT + 0x20, lu32);
    size_t generic = arm_elf_extab_routine(&elf, TEXT + 0x80);
    arm_elf_extab_word(&elf, 0x01000000); // 4 + 4 + 4 ...
    arm_elf_extab_word(&elf, 0x00b0b0b0); // + 4
    arm_elf_table_entry(&elf, TEXT + 0x30, generic);
    size_t no_further = arm_elf_extab_word(&elf, 0x81000001); // 4 + 8
    arm_elf_table_entry(&elf, TEXT + 0x40, no_further);
    struct reading r = read_cut(&elf, 0);
    ASSERT_ROWS(&r, FRAME_AT(0, 24), FRAME_AT(0x10, 84), FRAME_AT(0x20, 36), FRAME_AT(0x30, 16), FRAME_AT(0x40, 12));
    reading_free(&r);
}
END_TEST

START_TEST(personalities_that_cannot_be_read)
{
    struct arm_elf elf = arm_elf(TEXT, TEXT_END);
    arm_elf_inline_entry(&elf, TEXT, 0x8100b0b0); // a long form in the index
    arm_elf_inline_entry(&elf, TEXT + 0x10, LEAF);
    arm_elf_inline_entry(&elf, TEXT + 0x20, 0x90b0b0b0); // a bit that must be zero
    arm_elf_inline_entry(&elf, TEXT + 0x30, LEAF);
    arm_elf_table_entry(&elf, TEXT + 0x40, arm_elf_extab_word(&elf, 0x83b0b0b0)); // a reserved form
    arm_elf_inline_entry(&elf, TEXT + 0x50, LEAF);
    size_t no_code = arm_elf_extab_routine(&elf, TEXT_END + 0x1000);
    arm_elf_extab_word(&elf, 0x00b0b0b0);
    arm_elf_table_entry(&elf, TEXT + 0x60, no_code);
    struct reading r = read_cut(&elf, 0);
    ASSERT_ROWS(&r, REFUSED_AT(0, PERSONALITY), FRAME_AT(0x10, 0), REFUSED_AT(0x20, PERSONALITY), FRAME_AT(0x30, 0),
                REFUSED_AT(0x40, PERSONALITY), FRAME_AT(0x50, 0), REFUSED_AT(0x60, PERSONALITY));
    ck_assert_uint_eq(r.counts.refused, 4);
    reading_free(&r);
}
END_TEST

START_TEST(tables_cut_short)
{
    struct arm_elf elf = arm_elf(TEXT, TEXT_END);
    arm_elf_table_entry(&elf, TEXT, ARM_ELF_WORDS_MAX + 1000); // outside the image
    arm_elf_inline_entry(&elf, TEXT + 0x10, LEAF);
    arm_elf_inline_entry(&elf, TEXT + 0x20, 0x80b0b080); // ends inside an instruction, but behind `finish`
    arm_elf_inline_entry(&elf, TEXT + 0x30, 0x80000080); // ends inside an instruction
    arm_elf_inline_entry(&elf, TEXT + 0x40, LEAF);
    arm_elf_table_entry(&elf, TEXT + 0x50, arm_elf_extab_word(&elf, 0x81ff0000)); // runs past its segment
    struct reading r = read_cut(&elf, 0);
    ASSERT_ROWS(&r, REFUSED_AT(0, EXIDX_TRUNCATED), FRAME_AT(0x10, 0), FRAME_AT(0x20, 0),
                REFUSED_AT(0x30, EXIDX_TRUNCATED), FRAME_AT(0x40, 0), REFUSED_AT(0x50, EXIDX_TRUNCATED));
    reading_free(&r);
}
END_TEST

START_TEST(an_index_cut_inside_an_entry)
{
    struct arm_elf elf = arm_elf(TEXT, TEXT_END);
    arm_elf_inline_entry(&elf, TEXT, LEAF);
    arm_elf_inline_entry(&elf, TEXT + 0x10, LEAF);
    struct reading without_second_word = read_cut(&elf, 3);
    ASSERT_ROWS(&without_second_word, FRAME_AT(0, 0), REFUSED_AT(0x10, EXIDX_TRUNCATED));
    reading_free(&without_second_word);

    struct reading without_address = read_cut(&elf, 5);
    ASSERT_ROWS(&without_address, FRAME_AT(0, 0));
    ck_assert_uint_eq(without_address.counts.out_of_order, 1);
    reading_free(&without_address);

    struct reading empty = read_cut(&elf, 16);
    ASSERT_ROWS(&empty, HOLE_AT(0));
    reading_free(&empty);
}
END_TEST

START_TEST(other_sections_are_not_read)
{
    struct arm_elf elf = arm_elf(TEXT, TEXT_END);
    arm_elf_inline_entry(&elf, TEXT, LEAF);
    struct reading r = read_cut(&elf, 0);
    struct input_frame_section section = *arm_elf_index(r.image);
    struct base_error error = {.reason = BASE_OK};
    struct cfi_row_list rows = {.rows = NULL};
    section.kind = INPUT_FRAME_EH;
    ck_assert_int_eq(cfi_exidx_read(r.image, &section, TEXT, TEXT_END, &r.rules, &rows, &r.counts, &error), -1);
    ck_assert_int_eq(error.reason, BASE_ERR_UNSUPPORTED);
    reading_free(&r);
}
END_TEST

Suite *index_suite(void)
{
    Suite *suite = suite_create("exidx");
    TCase *tcase = tcase_create("index");
    tcase_add_test(tcase, functions_end_where_the_next_begins);
    tcase_add_test(tcase, an_entry_at_the_very_start_leaves_no_hole);
    tcase_add_test(tcase, equal_neighbours_keep_their_starts_only_with_a_frame);
    tcase_add_test(tcase, functions_end_with_their_executable_range);
    tcase_add_test(tcase, closing_entry_at_the_end_holds_nowhere);
    tcase_add_test(tcase, an_index_of_no_code_makes_no_table);
    tcase_add_test(tcase, last_entry_of_an_address_counts);
    tcase_add_test(tcase, thumb_bit_is_no_part_of_the_address);
    tcase_add_test(tcase, wrong_addresses_do_not_touch_their_neighbours);
    tcase_add_test(tcase, offsets_wrap_at_32_bits);
    tcase_add_test(tcase, table_entries_of_every_form);
    tcase_add_test(tcase, personalities_that_cannot_be_read);
    tcase_add_test(tcase, tables_cut_short);
    tcase_add_test(tcase, an_index_cut_inside_an_entry);
    tcase_add_test(tcase, other_sections_are_not_read);
    suite_add_tcase(suite, tcase);
    return suite;
}
