// SPDX-License-Identifier: Apache-2.0
// FDEs that readers of frame sections take at their word, and linkers and assemblers do not mean so: a table is right
// to differ from the readers there, and they have no say.
#include <check.h>
#include <stdlib.h>
#include <string.h>

#include "qutc/check/verify.h"
#include "qutc/qutc.h"
#include "tests/support/frame_asm.h"
#include "tests/support/run_suite.h"

static const struct {
    unsigned mask;
    unsigned index;
} judges[] = {{CHECK_JUDGE_LIBDW, 0}, {CHECK_JUDGE_LIBDWARF, 1}};

static struct check_verify_result result;

static void verify(const struct frame_asm *a, unsigned judges_mask)
{
    struct base_error error = {0};
    struct build_buffer file = frame_elf(a);
    struct input_image *image = build_open_bytes(&file, &error);
    ck_assert_ptr_nonnull(image);
    uint8_t *bytes;
    size_t size;
    struct qut_table table;
    ck_assert_int_eq(qutc_compile(image, NULL, &bytes, &size, NULL, &error), 0);
    ck_assert_int_eq(runtime_table_attach(&table, bytes, size, NULL), QUT_TABLE_OK);
    ck_assert_int_eq(check_verify(&table, image, judges_mask, &result, &error), 0);
    free(bytes);
    input_image_close(image);
    free(file.data);
}

static uint64_t abstained(unsigned judge, const char *reason)
{
    for (unsigned i = 0; i < CHECK_ABSTAIN_REASONS_MAX; i++)
        if (strcmp(result.judges[judge].reasons[i].text, reason) == 0)
            return result.judges[judge].reasons[i].rows;
    return 0;
}

// Each reader judges the one function that is apart, both together judge `exact` rows.
static void check_abstention(const struct frame_asm *a, const char *reason, uint64_t exact)
{
    for (unsigned i = 0; i < 2; i++) {
        verify(a, judges[i].mask);
        ck_assert_msg(result.wrong == 0, "%s: 0x%jx: %s", result.judges[judges[i].index].name,
                      (uintmax_t)result.findings[0].pc, result.findings[0].text);
        ck_assert_uint_eq(result.disputed, 0);
        ck_assert_uint_gt(abstained(judges[i].index, reason), 0);
        ck_assert_uint_ge(result.exact, 3);
    }
    verify(a, CHECK_JUDGE_LIBDW | CHECK_JUDGE_LIBDWARF);
    ck_assert_uint_eq(result.wrong + result.disputed, 0);
    ck_assert_uint_eq(result.exact, exact);
}

static void add(struct frame_asm *a, const struct frame_cie *cie, uint64_t start, uint64_t size)
{
    static const uint8_t program[] = {CFA_ADVANCE_LOC | 2, CFA_DEF_CFA_OFFSET, 32,
                                      CFA_ADVANCE_LOC | 4, CFA_DEF_CFA_OFFSET, 48};
    frame_add_fde(a, &(struct frame_fde){
                         .cie = cie, .start = start, .size = size, .program = program, .program_size = sizeof program});
}

// A linker that throws a function away leaves its FDE, with the address 0: in a library, where the text begins a few
// pages later, a large one reaches over code that has nothing to do with it.
START_TEST(discarded_code_lies_over_the_text)
{
    for (int with_others = 0; with_others < 2; with_others++) {
        struct frame_asm a = frame_asm(&arch_x86_64, _i ? INPUT_FRAME_DEBUG : INPUT_FRAME_EH);
        struct frame_cie cie = {0};
        const uint64_t at_0 = (uint64_t)-FRAME_TEXT;
        frame_add_cie(&a, &cie);
        add(&a, &cie, at_0, FRAME_TEXT + 0x200);
        add(&a, &cie, 0x300, 0x40);
        if (with_others) {
            add(&a, &cie, 0x80, 0x40);
            add(&a, &cie, at_0, FRAME_TEXT + 0x60);
        }
        check_abstention(&a, "FDE of discarded code", with_others ? 6 : 3);
        frame_free(&a);
    }
}
END_TEST

// Assemblers left the mark of Thumb code in addresses of .debug_frame, as Go's runtime for armhf has them.
START_TEST(thumb_bit_in_an_address)
{
    struct frame_asm a = frame_asm(arch_by_elf_machine(EM_ARM), _i ? INPUT_FRAME_DEBUG : INPUT_FRAME_EH);
    struct frame_cie cie = {0};
    frame_add_cie(&a, &cie);
    add(&a, &cie, 0x101, 0x20);
    add(&a, &cie, 0x140, 0x20);
    add(&a, &cie, 0x181, 0x20);
    add(&a, &cie, 0x1a0, 0x20);
    check_abstention(&a, "Thumb bit in an FDE's address", 6);
    frame_free(&a);
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("what readers have no say in");
    TCase *tests = tcase_create("abstain");
    suite_add_tcase(suite, tests);
    tcase_add_loop_test(tests, discarded_code_lies_over_the_text, 0, 2);
    tcase_add_loop_test(tests, thumb_bit_in_an_address, 0, 2);
    return run_suite(suite);
}
