// SPDX-License-Identifier: Apache-2.0
// Four times the input may take four times the work, not sixteen times. What was done is told by counters; what it
// took, by linear_test.sh.
#include "bench/walk/marks.h"
#include "tests/unit/qutc/cfi/expect.h"

// What compiling takes; opening the file is not counted.
static struct qutc_compile_stats measure(struct frame_asm *a)
{
    struct qutc_compile_stats stats;
    struct base_error error;
    struct build_buffer file = frame_elf(a);
    struct input_image *image = build_open_bytes(&file, &error);
    uint8_t *table = NULL;
    size_t size;
    ck_assert_ptr_nonnull(image);
    bench_count_on();
    qutc_compile(image, NULL, &table, &size, &stats, &error);
    bench_count_off();
    free(table);
    input_image_close(image);
    free(file.data);
    frame_free(a);
    return stats;
}

// One FDE with this many rows.
static struct frame_asm many_rows(unsigned rows)
{
    struct frame_asm a = frame_asm(&arch_x86_64, INPUT_FRAME_EH);
    struct frame_cie cie = {0};
    struct build_buffer program = {0};
    a.text_size = rows + 1;
    frame_add_cie(&a, &cie);
    for (unsigned i = 1; i < rows; i++) {
        frame_put(&program, CFA_DEF_CFA_OFFSET, 1);
        frame_put_uleb(&program, 8 * (i % 1000));
        frame_put(&program, CFA_ADVANCE_LOC | 1, 1);
    }
    frame_add_fde(
        &a, &(struct frame_fde){.cie = &cie, .size = rows, .program = program.data, .program_size = program.size});
    free(program.data);
    return a;
}

START_TEST(rows_of_one_fde)
{
    struct frame_asm a = many_rows(16000), b = many_rows(64000);
    struct qutc_compile_stats small = measure(&a), large = measure(&b);
    ck_assert_uint_eq(small.source_rows, 16000);
    ck_assert_uint_eq(large.source_rows, 64000);
}
END_TEST

// Every FDE inside the one before it; every fourth has a CIE of its own.
static struct frame_asm nested(unsigned fdes)
{
    struct frame_asm a = frame_asm(&arch_x86_64, INPUT_FRAME_EH);
    struct frame_cie cie = {0};
    a.text_size = 2 * (uint64_t)fdes;
    for (unsigned i = 0; i < fdes; i++) {
        cie.data_align = -(int64_t)(i / 4 % 64 + 1);
        if (i % 4 == 0)
            frame_add_cie(&a, &cie);
        frame_add_fde(&a, &(struct frame_fde){.cie = &cie,
                                              .start = i,
                                              .size = 2 * (uint64_t)(fdes - i),
                                              .program = BYTES(CFA_DEF_CFA_OFFSET, (uint8_t)(i % 2 ? 16 : 24))});
    }
    return a;
}

START_TEST(nested_fdes_and_their_cies)
{
    struct frame_asm a = nested(16000), b = nested(64000);
    struct qutc_compile_stats small = measure(&a), large = measure(&b);
    ck_assert_uint_eq(small.cie_count, 4000);
    ck_assert_uint_eq(large.cie_count, 16000);
    ck_assert_uint_eq(large.fde_count, 64000);
    ck_assert_uint_eq(large.source_rows, 64000); // each program ran once
}
END_TEST

// One long FDE with a row at every other byte, and a short one inside each of its rows.
static struct frame_asm comb(unsigned teeth)
{
    struct frame_asm a = many_rows(8 * teeth);
    struct frame_cie cie = {.version = 3};
    frame_add_cie(&a, &cie);
    for (unsigned i = 0; i < teeth; i++)
        frame_add_fde(&a, &(struct frame_fde){.cie = &cie, .start = 8 * (uint64_t)i + 2, .size = 4});
    return a;
}

START_TEST(a_comb)
{
    struct frame_asm a = comb(4000), b = comb(16000);
    measure(&a);
    struct qutc_compile_stats large = measure(&b);
    ck_assert_uint_eq(large.source_rows, 8 * 16000 + 16000);
    ck_assert_uint_eq(large.overlaps, 16000);
}
END_TEST

// FDEs whose CIE pointers lead, each to another one, into a long row of terminators.
static struct frame_asm into_terminators(unsigned fdes)
{
    struct frame_asm a = frame_asm(&arch_x86_64, INPUT_FRAME_EH);
    struct frame_cie cie = {0};
    frame_add_cie(&a, &cie);
    size_t zeros = build_add(&a.bytes, NULL, 16 * (size_t)fdes);
    for (unsigned i = 0; i < fdes; i++) {
        struct frame_cie nothing = {.offset = zeros + 4 * (size_t)i};
        frame_add_fde(&a, &(struct frame_fde){.cie = &nothing, .start = i % 1000, .size = 1});
    }
    return a;
}

START_TEST(cie_pointers_into_terminators)
{
    struct frame_asm a = into_terminators(10000), b = into_terminators(40000);
    measure(&a);
    struct qutc_compile_stats large = measure(&b);
    ck_assert_uint_eq(large.fde_count, 0);
}
END_TEST

// A remembered state more in each row, as deep as it goes, again and again.
static struct frame_asm remembering(unsigned rounds)
{
    struct frame_asm a = frame_asm(&arch_x86_64, INPUT_FRAME_EH);
    struct frame_cie cie = {0};
    a.text_size = 0x10000;
    frame_add_cie(&a, &cie);
    struct build_buffer program = {0};
    for (unsigned round = 0; round < rounds; round++) {
        for (int i = 0; i < 1000; i++)
            build_add(&program, BYTES(CFA_REMEMBER_STATE, CFA_OFFSET | 3, (uint8_t)(i % 100)));
        for (int i = 0; i < 1000; i++)
            build_add(&program, BYTES(CFA_RESTORE_STATE));
        build_add(&program, BYTES(CFA_ADVANCE_LOC | 1));
    }
    frame_add_fde(
        &a, &(struct frame_fde){.cie = &cie, .size = 0x8000, .program = program.data, .program_size = program.size});
    free(program.data);
    return a;
}

START_TEST(states_remembered_and_restored)
{
    struct frame_asm a = remembering(50), b = remembering(200);
    struct qutc_compile_stats small = measure(&a), large = measure(&b);
    ck_assert_uint_eq(large.row_count, small.row_count);
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("linear in size");
    TCase *tests = tcase_create("four times as much");
    tcase_set_timeout(tests, 30);
    tcase_add_test(tests, rows_of_one_fde);
    tcase_add_test(tests, nested_fdes_and_their_cies);
    tcase_add_test(tests, a_comb);
    tcase_add_test(tests, cie_pointers_into_terminators);
    tcase_add_test(tests, states_remembered_and_restored);
    suite_add_tcase(suite, tests);
    return run_suite(suite);
}
