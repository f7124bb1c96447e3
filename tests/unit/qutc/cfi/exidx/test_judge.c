// SPDX-License-Identifier: Apache-2.0
// The judge that reads readelf's text: that it gives the values which the instructions mean.
#include <check.h>
#include <stdlib.h>
#include <string.h>

#include "qutc/check/judge.h"
#include "tests/support/arm_elf.h"
#include "tests/unit/qutc/cfi/exidx/suites.h"

enum {
    TEXT = 0x10000,
    TEXT_END = 0x10100,
    STACK = 0x7000,
    UNREADABLE = 0x9000,
    ALL_REGISTERS = 0xffff,
};

// Every word of the stack holds its own address, with a mark.
static uint64_t word_at(uint64_t address)
{
    return address | 0x55000000;
}

static bool read_word(void *context, uint64_t address, uint64_t *value)
{
    (void)context;
    *value = word_at(address);
    return address < UNREADABLE;
}

static struct arch_frame_regs registers_at(uint64_t pc)
{
    struct arch_frame_regs regs = {.pc = pc, .valid = ALL_REGISTERS};
    for (unsigned reg = 0; reg < 16; reg++)
        regs.reg[reg] = 0x1000 + reg;
    regs.reg[7] = STACK + 0x400;
    regs.reg[13] = STACK;
    return regs;
}

static struct check_judge *open_judge(const struct input_image *image)
{
    struct base_error error = {.reason = BASE_OK};
    char text[256];
    struct check_judge *judge = check_judge_readelf.open(image, arm_elf_index(image), &error);
    ck_assert_msg(judge != NULL, "%s", base_error_text(&error, text, sizeof text));
    return judge;
}

static struct check_judgement judgement_with(const struct arm_elf *elf, const struct arch_frame_regs *regs)
{
    struct input_image *image = arm_elf_open(elf);
    struct check_judge *judge = open_judge(image);
    struct check_judgement judgement;
    check_judge_readelf.at(judge, regs, read_word, NULL, &judgement);
    check_judge_readelf.close(judge);
    input_image_close(image);
    return judgement;
}

static struct check_judgement judgement_of_inline(uint32_t data)
{
    struct arm_elf elf = arm_elf(TEXT, TEXT_END);
    arm_elf_inline_entry(&elf, TEXT + 0x10, data);
    struct arch_frame_regs regs = registers_at(TEXT + 0x20);
    return judgement_with(&elf, &regs);
}

static uint64_t tracked(const struct check_judgement *judgement, unsigned reg)
{
    return judgement->tracked[arch_slot(&arch_arm, reg)];
}

START_TEST(pops_read_the_stack)
{
    struct check_judgement j = judgement_of_inline(0x8001a9b0); // + 8, pop r4 r5 lr
    ck_assert_int_eq(j.verdict, CHECK_VERDICT_ROW);
    ck_assert_uint_eq(j.start, TEXT + 0x10);
    ck_assert_uint_eq(j.end, TEXT_END);
    ck_assert_uint_eq(j.cfa, STACK + 20);
    ck_assert_uint_eq(j.sp, STACK + 20);
    ck_assert_uint_eq(j.ra, word_at(STACK + 16));
    ck_assert_uint_eq(tracked(&j, 4), word_at(STACK + 8));
    ck_assert_uint_eq(tracked(&j, 5), word_at(STACK + 12));
    ck_assert_uint_eq(tracked(&j, 11), 0x1000 + 11);
    ck_assert(j.body_only_source);
}
END_TEST

START_TEST(vsp_can_be_a_register)
{
    struct check_judgement j = judgement_of_inline(0x8097a8b0); // vsp = r7, pop r4 lr
    ck_assert_int_eq(j.verdict, CHECK_VERDICT_ROW);
    ck_assert_uint_eq(j.cfa, STACK + 0x408);
    ck_assert_uint_eq(j.ra, word_at(STACK + 0x404));
}
END_TEST

static const struct {
    uint32_t data;
    uint32_t cfa;
} moves[] = {
    {0x80b0b0b0, STACK},       {0x803fb0b0, STACK + 256}, {0x807fb0b0, STACK - 256}, {0x80b10fb0, STACK + 16},
    {0x80b204b0, STACK + 532}, {0x80b381b0, STACK + 20},  {0x80b4b0b0, STACK + 4},   {0x80b9b0b0, STACK + 20},
    {0x80c1b0b0, STACK + 16},  {0x80c6a1b0, STACK + 16},  {0x80c705b0, STACK + 8},   {0x80c801b0, STACK + 16},
    {0x80c981b0, STACK + 16},  {0x80d1b0b0, STACK + 16},  {0x809eb0b0, 0x1000 + 14}, {0x80b000b0, STACK},
};

START_TEST(every_wording_moves_vsp)
{
    struct check_judgement j = judgement_of_inline(moves[_i].data);
    ck_assert_int_eq(j.verdict, CHECK_VERDICT_ROW);
    ck_assert_uint_eq(j.cfa, moves[_i].cfa);
}
END_TEST

static const struct {
    uint32_t data;
    enum check_verdict verdict;
} refusals[] = {
    {ARM_ELF_CANTUNWIND, CHECK_VERDICT_CANTUNWIND},
    {0x808000b0, CHECK_VERDICT_CANTUNWIND},
    {0x809db0b0, CHECK_VERDICT_ABSTAIN},
    {0x80b100b0, CHECK_VERDICT_ABSTAIN},
    {0x80cab0b0, CHECK_VERDICT_ABSTAIN},
    {0x80c8ffb0, CHECK_VERDICT_ABSTAIN},
    {0x80c6ffb0, CHECK_VERDICT_ABSTAIN},
};

START_TEST(what_has_no_values_is_said_so)
{
    struct check_judgement j = judgement_of_inline(refusals[_i].data);
    ck_assert_int_eq(j.verdict, refusals[_i].verdict);
    ck_assert(j.verdict != CHECK_VERDICT_ABSTAIN || j.reason);
}
END_TEST

// The routine has no name here; the judge reads what follows it all the same, and leaves no trace of how.
START_TEST(nameless_personality_routines_are_read)
{
    struct arm_elf elf = arm_elf(TEXT, TEXT_END);
    size_t generic = arm_elf_extab_routine(&elf, TEXT + 0x80);
    arm_elf_extab_word(&elf, 0x010000a8); // + 4 + 4, pop r4 lr
    arm_elf_extab_word(&elf, 0x01b0b0b0); // + 8
    arm_elf_table_entry(&elf, TEXT, generic);
    struct arch_frame_regs regs = registers_at(TEXT);
    struct check_judgement j = judgement_with(&elf, &regs);
    ck_assert_int_eq(j.verdict, CHECK_VERDICT_ROW);
    ck_assert_uint_eq(j.cfa, STACK + 24);
    ck_assert_uint_eq(j.ra, word_at(STACK + 12));
}
END_TEST

START_TEST(signal_frames_are_told)
{
    struct check_judgement j = judgement_of_inline(0x808e00b0); // pop sp lr pc
    ck_assert_int_eq(j.verdict, CHECK_VERDICT_ROW);
    ck_assert(j.signal_frame);
    ck_assert_uint_eq(j.cfa, word_at(STACK));
    ck_assert_uint_eq(j.ra, word_at(STACK + 8));
    j = judgement_of_inline(0x808a00b0); // pop sp pc
    ck_assert(!j.signal_frame);
}
END_TEST

START_TEST(signed_return_addresses_are_told)
{
    ck_assert(judgement_of_inline(0x80b4b0b0).ra_signed);
    struct check_judgement j = judgement_of_inline(0x8000b0b0);
    ck_assert(j.ra_signed_known && !j.ra_signed);
}
END_TEST

START_TEST(memory_and_registers_can_be_missing)
{
    struct arm_elf elf = arm_elf(TEXT, TEXT_END);
    arm_elf_inline_entry(&elf, TEXT, 0x80a8b0b0);
    struct arch_frame_regs regs = registers_at(TEXT);
    regs.reg[13] = UNREADABLE;
    ck_assert_int_eq(judgement_with(&elf, &regs).verdict, CHECK_VERDICT_ABSTAIN);
    regs = registers_at(TEXT);
    regs.valid &= ~(UINT64_C(1) << 13);
    ck_assert_int_eq(judgement_with(&elf, &regs).verdict, CHECK_VERDICT_ABSTAIN);
    regs = registers_at(TEXT);
    regs.valid &= ~(UINT64_C(1) << 11);
    struct check_judgement j = judgement_with(&elf, &regs);
    ck_assert_int_eq(j.verdict, CHECK_VERDICT_ROW);
    ck_assert_uint_eq(j.tracked_unknown, 1u << arch_slot(&arch_arm, 11));
}
END_TEST

START_TEST(holes_and_boundaries)
{
    struct arm_elf elf = arm_elf(TEXT, TEXT + 0x80);
    elf.text[1] = (struct input_range){TEXT + 0x200, TEXT + 0x280};
    arm_elf_inline_entry(&elf, TEXT + 0x10, 0x80b0b0b0);
    arm_elf_inline_entry(&elf, TEXT + 0x20, 0x80b0b0b0);
    arm_elf_inline_entry(&elf, TEXT + 0x210, 0x80b0b0b0);
    struct input_image *image = arm_elf_open(&elf);
    struct check_judge *judge = open_judge(image);

    static const uint64_t expected[] = {TEXT + 0x10, TEXT + 0x20, TEXT + 0x80, TEXT + 0x210, TEXT + 0x280};
    uint64_t *pcs;
    size_t count;
    struct base_error error = {.reason = BASE_OK};
    ck_assert_int_eq(check_judge_readelf.boundaries(judge, &pcs, &count, &error), 0);
    ck_assert_uint_eq(count, sizeof expected / sizeof *expected);
    ck_assert_mem_eq(pcs, expected, sizeof expected);
    free(pcs);

    static const uint64_t holes[] = {TEXT, TEXT + 0x80, TEXT + 0x20e, TEXT + 0x280};
    for (size_t i = 0; i < sizeof holes / sizeof *holes; i++) {
        struct arch_frame_regs regs = registers_at(holes[i]);
        struct check_judgement j;
        check_judge_readelf.at(judge, &regs, read_word, NULL, &j);
        ck_assert_int_eq(j.verdict, CHECK_VERDICT_NO_ROW);
        ck_assert(j.start <= holes[i] && holes[i] < j.end);
    }
    check_judge_readelf.close(judge);
    input_image_close(image);
}
END_TEST

START_TEST(what_cannot_be_judged_is_refused)
{
    struct arm_elf elf = arm_elf(TEXT, TEXT_END);
    arm_elf_inline_entry(&elf, TEXT, 0x80b0b0b0);
    struct input_image *image = arm_elf_open(&elf);
    struct input_frame_section section = *arm_elf_index(image);
    struct base_error error = {.reason = BASE_OK};
    section.kind = INPUT_FRAME_EH;
    ck_assert_ptr_null(check_judge_readelf.open(image, &section, &error));
    ck_assert_int_eq(error.reason, BASE_ERR_UNSUPPORTED);

    // Tests run in a process of their own each: the search path is this one's only.
    ck_assert_int_eq(setenv("PATH", "/nonexistent", 1), 0);
    error = (struct base_error){.reason = BASE_OK};
    ck_assert_ptr_null(check_judge_readelf.open(image, arm_elf_index(image), &error));
    ck_assert_int_eq(error.reason, BASE_ERR_IO);
    ck_assert_ptr_nonnull(strstr(error.detail, "cannot run readelf"));
    input_image_close(image);
}
END_TEST

Suite *judge_suite(void)
{
    Suite *suite = suite_create("readelf");
    TCase *tcase = tcase_create("judge");
    tcase_set_timeout(tcase, 60);
    tcase_add_test(tcase, pops_read_the_stack);
    tcase_add_test(tcase, vsp_can_be_a_register);
    tcase_add_loop_test(tcase, every_wording_moves_vsp, 0, (int)(sizeof moves / sizeof *moves));
    tcase_add_loop_test(tcase, what_has_no_values_is_said_so, 0, (int)(sizeof refusals / sizeof *refusals));
    tcase_add_test(tcase, nameless_personality_routines_are_read);
    tcase_add_test(tcase, signal_frames_are_told);
    tcase_add_test(tcase, signed_return_addresses_are_told);
    tcase_add_test(tcase, memory_and_registers_can_be_missing);
    tcase_add_test(tcase, holes_and_boundaries);
    tcase_add_test(tcase, what_cannot_be_judged_is_refused);
    suite_add_tcase(suite, tcase);
    return suite;
}
