// SPDX-License-Identifier: Apache-2.0
// The judges against frame sections written by hand, whose rows are known.
#include <check.h>
#include <stdlib.h>
#include <string.h>

#include "qutc/check/cfi_walk.h"
#include "qutc/check/compare.h"
#include "tests/support/run_suite.h"

static const struct check_judge_class *const judges[] = {&check_judge_libdw, &check_judge_libdwarf};
enum { LIBDW, LIBDWARF, JUDGES };

// Appends one record: its length, its id, its body, padded with nops to a multiple of 8.
static size_t put_record(uint8_t *section, size_t at, uint32_t id, const uint8_t *body, size_t size)
{
    uint32_t length = (uint32_t)(4 + size);
    while ((length + 4) % 8)
        length++;
    memset(section + at, 0, length + 4);
    memcpy(section + at, &length, 4);
    memcpy(section + at + 4, &id, 4);
    memcpy(section + at + 8, body, size);
    return at + 4 + length;
}

struct fixture {
    struct input_image image;
    uint8_t bytes[512];
    size_t size;
    size_t fde_at[8];
    unsigned fde_count;
};

static void start(struct fixture *f, const struct arch *arch, enum input_frame_kind kind, const uint8_t *cie,
                  size_t size)
{
    memset(f, 0, sizeof *f);
    f->image.arch = arch;
    f->image.is_64 = arch->word_bytes == 8;
    f->image.frame_count = 1;
    f->image.frame[0] = (struct input_frame_section){.kind = kind, .name = "frames", .vaddr = 0x500000};
    f->size = put_record(f->bytes, 0, kind == INPUT_FRAME_EH ? 0 : UINT32_MAX, cie, size);
}

static void add_fde(struct fixture *f, uint32_t pc, uint32_t size, const uint8_t *code, size_t code_size)
{
    uint8_t body[64] = {0};
    memcpy(body, &pc, 4);
    memcpy(body + 4, &size, 4);
    if (code_size)
        memcpy(body + 9, code, code_size); // after an empty augmentation
    f->fde_at[f->fde_count++] = f->size;
    uint32_t id = f->image.frame[0].kind == INPUT_FRAME_EH ? (uint32_t)f->size + 4 : 0;
    f->size = put_record(f->bytes, f->size, id, body, 9 + code_size);
}

static struct check_judge *open_judge(struct fixture *f, unsigned which)
{
    struct base_error error = {0};
    f->image.frame[0].bytes = (struct base_bytes){f->bytes, f->size};
    struct check_judge *judge = judges[which]->open(&f->image, &f->image.frame[0], &error);
    ck_assert_msg(judge != NULL, "%s: %s", judges[which]->name, error.detail);
    return judge;
}

static struct check_context context;

static struct check_judgement ask(struct fixture *f, unsigned which, struct check_judge *judge, uint64_t pc)
{
    struct check_judgement answer;
    check_context_init(&context, f->image.arch, 7);
    check_context_set_pc(&context, f->image.arch, pc);
    judges[which]->at(judge, &context.frame, check_context_read, &context, &answer);
    return answer;
}

static uint64_t word_at(uint64_t address)
{
    uint64_t value;
    check_context_read(&context, address, &value);
    return value;
}

// Version 1, "zR", pointers as udata4: def_cfa r7+8, r16 at cfa-8
static const uint8_t cie_x86_64[] = {1, 'z', 'R', 0, 1, 0x78, 16, 1, 0x03, 0x0c, 7, 8, 0x90, 1};
// advance 1: cfa_offset 16, rbp at cfa-16; advance 3: def_cfa_register rbp; advance 4: rip undefined
static const uint8_t fde_x86_64[] = {0x41, 0x0e, 16, 0x86, 2, 0x43, 0x0d, 6, 0x44, 0x07, 16};

static void check_x86_64(enum input_frame_kind kind)
{
    static struct fixture f;
    start(&f, &arch_x86_64, kind, cie_x86_64, sizeof cie_x86_64);
    add_fde(&f, 0x1000, 0x20, fde_x86_64, sizeof fde_x86_64);
    for (unsigned which = 0; which < JUDGES; which++) {
        struct check_judge *judge = open_judge(&f, which);
        struct check_judgement j = ask(&f, which, judge, 0xfff);
        ck_assert_int_eq(j.verdict, CHECK_VERDICT_NO_ROW);

        j = ask(&f, which, judge, 0x1000);
        ck_assert_int_eq(j.verdict, CHECK_VERDICT_ROW);
        ck_assert_uint_eq(j.start, 0x1000);
        ck_assert_uint_eq(j.end, 0x1001);
        ck_assert_uint_eq(j.cfa, context.frame.reg[7] + 8);
        ck_assert_uint_eq(j.sp, j.cfa);
        ck_assert_uint_eq(j.ra, word_at(context.frame.reg[7]));
        ck_assert_uint_eq(j.tracked[0], context.frame.reg[6]);
        ck_assert_uint_eq(j.tracked[1], context.frame.reg[3]);
        ck_assert_uint_eq(j.tracked_undefined, 0);
        ck_assert_uint_eq(j.tracked_unknown, 0);

        j = ask(&f, which, judge, 0x1005);
        ck_assert_int_eq(j.verdict, CHECK_VERDICT_ROW);
        ck_assert_uint_ge(j.start, 0x1004);
        ck_assert_uint_le(j.start, 0x1005);
        ck_assert_uint_eq(j.end, 0x1008);
        ck_assert_uint_eq(j.cfa, context.frame.reg[6] + 16);
        ck_assert_uint_eq(j.tracked[0], word_at(context.frame.reg[6]));

        ck_assert_int_eq(ask(&f, which, judge, 0x101f).verdict, CHECK_VERDICT_END);
        ck_assert_int_eq(ask(&f, which, judge, 0x1020).verdict, CHECK_VERDICT_NO_ROW);

        uint64_t *pcs;
        size_t count;
        ck_assert_int_eq(judges[which]->boundaries(judge, &pcs, &count, NULL), 0);
        ck_assert_uint_eq(count, 2);
        ck_assert_uint_eq(pcs[0], 0x1000);
        ck_assert_uint_eq(pcs[1], 0x1020);
        free(pcs);
        judges[which]->close(judge);
    }
}

START_TEST(eh_frame)
{
    check_x86_64(INPUT_FRAME_EH);
}
END_TEST

// ART's .debug_frame has an augmentation that only .eh_frame should have.
START_TEST(debug_frame_with_augmentation)
{
    check_x86_64(INPUT_FRAME_DEBUG);
}
END_TEST

START_TEST(signed_return_address)
{
    // "zRB": def_cfa sp+0; advance 4: negate_ra_state, cfa_offset 32, x29 at cfa-32, x30 at cfa-24; advance 8:
    // remember; negate, advance 4: restore
    static const uint8_t cie[] = {1, 'z', 'R', 'B', 0, 4, 0x78, 30, 1, 0x03, 0x0c, 31, 0};
    static const uint8_t code[] = {0x41, 0x2d, 0x0e, 32, 0x9d, 4, 0x9e, 3, 0x42, 0x0a, 0x2d, 0x41, 0x0b};
    static struct fixture f;
    start(&f, &arch_aarch64, INPUT_FRAME_EH, cie, sizeof cie);
    add_fde(&f, 0x1000, 0x40, code, sizeof code);
    static const struct {
        uint64_t pc;
        bool is_signed;
    } expected[] = {{0x1000, false}, {0x1004, true}, {0x1008, true}, {0x100c, false}, {0x1010, true}};
    for (unsigned which = 0; which < JUDGES; which++) {
        struct check_judge *judge = open_judge(&f, which);
        for (size_t i = 0; i < sizeof expected / sizeof *expected; i++) {
            struct check_judgement j = ask(&f, which, judge, expected[i].pc);
            ck_assert_int_eq(j.verdict, CHECK_VERDICT_ROW);
            ck_assert(j.ra_signed_known);
            ck_assert_int_eq(j.ra_signed, expected[i].is_signed);
            // window_save would put x19..x28 into memory
            for (unsigned slot = 1; slot < arch_aarch64.tracked_count; slot++)
                ck_assert_uint_eq(j.tracked[slot], context.frame.reg[arch_aarch64.tracked[slot]]);
            uint64_t cfa = context.frame.reg[31] + (i ? 32 : 0);
            ck_assert_uint_eq(j.cfa, cfa);
            ck_assert_uint_eq(j.ra, i ? word_at(cfa - 24) : context.frame.reg[30]);
        }
        judges[which]->close(judge);
    }
}
END_TEST

START_TEST(overlapping_functions)
{
    static const uint8_t other[] = {0x0e, 48};
    static struct fixture f;
    start(&f, &arch_x86_64, INPUT_FRAME_EH, cie_x86_64, sizeof cie_x86_64);
    add_fde(&f, 0x1000, 0x20, NULL, 0);
    add_fde(&f, 0x1010, 0x30, other, sizeof other);
    add_fde(&f, 0x2000, 0x10, NULL, 0);
    struct check_judge *judge = open_judge(&f, LIBDW);
    ck_assert_int_eq(ask(&f, LIBDW, judge, 0x1018).verdict, CHECK_VERDICT_ABSTAIN);
    ck_assert_int_eq(ask(&f, LIBDW, judge, 0x1000).verdict, CHECK_VERDICT_ABSTAIN);
    ck_assert_int_eq(ask(&f, LIBDW, judge, 0x2000).verdict, CHECK_VERDICT_ROW);
    judges[LIBDW]->close(judge);

    judge = open_judge(&f, LIBDWARF);
    struct check_judgement j = ask(&f, LIBDWARF, judge, 0x1018);
    ck_assert_uint_eq(j.cfa, context.frame.reg[7] + 48);
    j = ask(&f, LIBDWARF, judge, 0x1008);
    ck_assert_uint_eq(j.cfa, context.frame.reg[7] + 8);
    judges[LIBDWARF]->close(judge);
}
END_TEST

START_TEST(terminator_between_records)
{
    static struct fixture f;
    start(&f, &arch_x86_64, INPUT_FRAME_EH, cie_x86_64, sizeof cie_x86_64);
    add_fde(&f, 0x1000, 0x20, NULL, 0);
    f.size += 4;
    memset(f.bytes + f.size - 4, 0, 4);
    add_fde(&f, 0x2000, 0x20, NULL, 0);
    for (unsigned which = 0; which < JUDGES; which++) {
        struct check_judge *judge = open_judge(&f, which);
        ck_assert_int_eq(ask(&f, which, judge, 0x1000).verdict, CHECK_VERDICT_ROW);
        ck_assert_int_eq(ask(&f, which, judge, 0x2000).verdict, CHECK_VERDICT_ROW);
        judges[which]->close(judge);
    }
}
END_TEST

START_TEST(dex_pc_mark)
{
    // val_expression r0: const4u "DEX1", drop, bregx r12 0
    static const uint8_t code[] = {0x16, 0, 9, 0x0c, 'D', 'E', 'X', '1', 0x13, 0x92, 12, 0};
    static struct fixture f;
    start(&f, &arch_x86_64, INPUT_FRAME_EH, cie_x86_64, sizeof cie_x86_64);
    add_fde(&f, 0x1000, 0x20, code, sizeof code);
    add_fde(&f, 0x2000, 0x20, NULL, 0);
    for (unsigned which = 0; which < JUDGES; which++) {
        struct check_judge *judge = open_judge(&f, which);
        struct check_judgement j = ask(&f, which, judge, 0x1000);
        ck_assert(j.dex_pc_known);
        ck_assert_int_eq(j.dex_pc_reg, 12);
        ck_assert_int_eq(ask(&f, which, judge, 0x2000).dex_pc_reg, QUT_NO_REGISTER);
        judges[which]->close(judge);
    }
}
END_TEST

START_TEST(damaged_sections)
{
    // Every prefix, and every byte changed: an answer or a refusal, never a crash.
    static struct fixture f;
    start(&f, &arch_x86_64, INPUT_FRAME_EH, cie_x86_64, sizeof cie_x86_64);
    add_fde(&f, 0x1000, 0x20, fde_x86_64, sizeof fde_x86_64);
    add_fde(&f, 0x2000, 0x20, NULL, 0);
    size_t size = f.size;
    for (unsigned which = 0; which < JUDGES; which++) {
        for (size_t i = 0; i < 2 * size; i++) {
            struct fixture damaged = f;
            if (i < size)
                damaged.size = i;
            else
                damaged.bytes[i - size] ^= 0xff;
            damaged.image.frame[0].bytes = (struct base_bytes){damaged.bytes, damaged.size};
            struct base_error error = {0};
            struct check_judge *judge = judges[which]->open(&damaged.image, &damaged.image.frame[0], &error);
            if (!judge) {
                ck_assert_int_ne(error.reason, BASE_OK);
                continue;
            }
            for (uint64_t pc = 0x1000; pc < 0x1022; pc++)
                ask(&damaged, which, judge, pc);
            judges[which]->close(judge);
        }
    }
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("judges");
    TCase *tcase = tcase_create("all");
    tcase_add_test(tcase, eh_frame);
    tcase_add_test(tcase, debug_frame_with_augmentation);
    tcase_add_test(tcase, signed_return_address);
    tcase_add_test(tcase, overlapping_functions);
    tcase_add_test(tcase, terminator_between_records);
    tcase_add_test(tcase, dex_pc_mark);
    tcase_add_test(tcase, damaged_sections);
    suite_add_tcase(suite, tcase);
    return run_suite(suite);
}
