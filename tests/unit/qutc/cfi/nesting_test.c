// SPDX-License-Identifier: Apache-2.0
// Which FDE wins where several describe one pc. The policy: qutc/cfi/frame_program.h.
#include "tests/unit/qutc/cfi/expect.h"

// An FDE whose only row says cfa = rsp + offset.
struct layer {
    uint64_t start, size;
    uint8_t offset;
};

static void expect(const struct layer *layers, size_t count, const char *expected)
{
    struct frame_asm a = frame_asm(&arch_x86_64, INPUT_FRAME_EH);
    struct frame_cie cie = {0};
    frame_add_cie(&a, &cie);
    for (size_t i = 0; i < count; i++)
        frame_add_fde(&a, &(struct frame_fde){.cie = &cie,
                                              .start = layers[i].start,
                                              .size = layers[i].size,
                                              .program = BYTES(CFA_DEF_CFA_OFFSET, layers[i].offset)});
    expect_rows(&a, expected);
}

#define LAYERS(...)                                                                                                    \
    ((const struct layer[]){__VA_ARGS__}), sizeof((const struct layer[]){__VA_ARGS__}) / sizeof(struct layer)
#define ROW(RANGE, OFFSET) RANGE " cfa=rsp+" OFFSET " ra=[cfa-8] fp=same\n"

START_TEST(side_by_side)
{
    expect(LAYERS({0, 0x10, 16}, {0x10, 0x10, 24}), ROW("10000-10010", "16") ROW("10010-10020", "24"));
    expect(LAYERS({0, 0x10, 16}, {0x18, 8, 24}), ROW("10000-10010", "16") ROW("10018-10020", "24"));
}
END_TEST

START_TEST(backward_order)
{
    expect(LAYERS({0x20, 0x10, 32}, {0x10, 0x10, 24}, {0, 0x10, 16}),
           ROW("10000-10010", "16") ROW("10010-10020", "24") ROW("10020-10030", "32"));
}
END_TEST

START_TEST(empty_ones_are_none)
{
    expect(LAYERS({0, 0x10, 16}, {4, 0, 24}), ROW("10000-10010", "16"));
}
END_TEST

START_TEST(the_inner_one_wins_and_the_outer_returns)
{
    expect(LAYERS({0, 0x40, 16}, {0x10, 0x10, 24}),
           ROW("10000-10010", "16") ROW("10010-10020", "24") ROW("10020-10040", "16"));
    expect(LAYERS({0x10, 0x10, 24}, {0, 0x40, 16}),
           ROW("10000-10010", "16") ROW("10010-10020", "24") ROW("10020-10040", "16"));
    expect(LAYERS({0, 0x40, 16}, {8, 0x30, 24}, {0x10, 8, 32}, {0x20, 0x18, 40}),
           ROW("10000-10008", "16") ROW("10008-10010", "24") ROW("10010-10018", "32") ROW("10018-10020", "24")
               ROW("10020-10038", "40") ROW("10038-10040", "16"));
}
END_TEST

START_TEST(the_later_start_wins_an_overlap)
{
    expect(LAYERS({0, 0x20, 16}, {0x10, 0x20, 24}), ROW("10000-10010", "16") ROW("10010-10030", "24"));
    expect(LAYERS({0, 0x20, 16}, {0x10, 0x20, 24}, {0x18, 0x40, 32}),
           ROW("10000-10010", "16") ROW("10010-10018", "24") ROW("10018-10058", "32"));
}
END_TEST

START_TEST(of_one_start_the_first_in_the_section_wins)
{
    expect(LAYERS({0, 0x10, 16}, {0, 0x10, 24}), ROW("10000-10010", "16"));
    expect(LAYERS({0, 0x10, 16}, {0, 0x20, 24}), ROW("10000-10010", "16") ROW("10010-10020", "24"));
    expect(LAYERS({0, 0x20, 16}, {0, 0x10, 24}), ROW("10000-10020", "16"));
    expect(LAYERS({0, 0x10, 16}, {0, 0x10, 24}, {0, 0x10, 32}), ROW("10000-10010", "16"));
}
END_TEST

START_TEST(rows_of_the_outer_one_go_on_below)
{
    struct frame_asm a = frame_asm(&arch_x86_64, INPUT_FRAME_EH);
    struct frame_cie cie = {0};
    frame_add_cie(&a, &cie);
    frame_add_fde(&a, &(struct frame_fde){.cie = &cie,
                                          .size = 0x40,
                                          .program = BYTES(CFA_ADVANCE_LOC | 0x10, CFA_DEF_CFA_OFFSET, 16,
                                                           CFA_ADVANCE_LOC | 0x10, CFA_DEF_CFA_OFFSET, 24)});
    frame_add_fde(
        &a, &(struct frame_fde){.cie = &cie, .start = 0x08, .size = 0x20, .program = BYTES(CFA_DEF_CFA_OFFSET, 64)});
    struct qutc_compile_stats stats;
    expect_text(rows_of(&a, &stats), ROW("10000-10008", "8") ROW("10008-10028", "64") ROW("10028-10040", "24"));
    ck_assert_uint_eq(stats.overlaps, 1);
    ck_assert_uint_eq(stats.fde_count, 2);
    ck_assert_uint_eq(stats.source_rows, 4);
    frame_free(&a);
}
END_TEST

START_TEST(ranges_outside_the_text)
{
    // begins in the text, ends behind it
    expect(LAYERS({0x3f0, 0x100, 16}), ROW("103f0-10400", "16"));
    // discarded code
    expect(LAYERS({0, 0x10, 16}, {0x400, 0x10, 24}, {(uint64_t)-FRAME_TEXT, 0x20000, 24}), ROW("10000-10010", "16"));
}
END_TEST

START_TEST(ranges_that_wrap)
{
    struct frame_asm a = frame_asm(&arch_x86_64, INPUT_FRAME_EH);
    struct frame_cie cie = {0};
    frame_add_cie(&a, &cie);
    frame_add_fde(&a, &(struct frame_fde){.cie = &cie, .size = UINT64_MAX - 8});
    frame_add_fde(&a, &(struct frame_fde){.cie = &cie, .start = 0x20, .size = 0x10});
    struct qutc_compile_stats stats;
    expect_text(rows_of(&a, &stats), ROW("10020-10030", "8"));
    ck_assert_uint_eq(stats.skipped_fdes, 1);
    ck_assert_int_eq(stats.first_skipped.reason, BASE_ERR_MALFORMED);
    frame_free(&a);
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("overlapping FDEs");
    TCase *tests = tcase_create("policy");
    tcase_add_test(tests, side_by_side);
    tcase_add_test(tests, backward_order);
    tcase_add_test(tests, empty_ones_are_none);
    tcase_add_test(tests, the_inner_one_wins_and_the_outer_returns);
    tcase_add_test(tests, the_later_start_wins_an_overlap);
    tcase_add_test(tests, of_one_start_the_first_in_the_section_wins);
    tcase_add_test(tests, rows_of_the_outer_one_go_on_below);
    tcase_add_test(tests, ranges_outside_the_text);
    tcase_add_test(tests, ranges_that_wrap);
    suite_add_tcase(suite, tests);
    return run_suite(suite);
}
