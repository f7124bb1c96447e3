// SPDX-License-Identifier: Apache-2.0
// Every instruction of frame programs on x86-64, with rules worked out by hand. The CIE says cfa = rsp + 8,
// ra at cfa - 8; the factors are 1 and -8.
#include "tests/unit/qutc/cfi/expect.h"

enum { RBX = 3, RBP = 6, RSP = 7, R12 = 12, RIP = 16 };

#define ENTRY "cfa=rsp+8 ra=[cfa-8] fp=same"

static void expect(const uint8_t *program, size_t size, const char *expected)
{
    expect_program(&arch_x86_64, program, size, expected);
}

START_TEST(an_empty_program_is_the_initial_state)
{
    expect(NULL, 0, "10000-10040 " ENTRY "\n");
    expect(BYTES(CFA_NOP, CFA_NOP), "10000-10040 " ENTRY "\n");
}
END_TEST

START_TEST(advances_in_every_width)
{
    expect(BYTES(CFA_ADVANCE_LOC | 1, CFA_DEF_CFA_OFFSET, 16, CFA_ADVANCE_LOC1, 2, CFA_DEF_CFA_OFFSET, 24,
                 CFA_ADVANCE_LOC2, 3, 0, CFA_DEF_CFA_OFFSET, 32, CFA_ADVANCE_LOC4, 4, 0, 0, 0, CFA_DEF_CFA_OFFSET, 40,
                 CFA_MIPS_ADVANCE_LOC8, 5, 0, 0, 0, 0, 0, 0, 0, CFA_DEF_CFA_OFFSET, 48),
           "10000-10001 " ENTRY "\n"
           "10001-10003 cfa=rsp+16 ra=[cfa-8] fp=same\n"
           "10003-10006 cfa=rsp+24 ra=[cfa-8] fp=same\n"
           "10006-1000a cfa=rsp+32 ra=[cfa-8] fp=same\n"
           "1000a-1000f cfa=rsp+40 ra=[cfa-8] fp=same\n"
           "1000f-10040 cfa=rsp+48 ra=[cfa-8] fp=same\n");
}
END_TEST

START_TEST(what_lies_past_the_end_describes_nothing)
{
    expect(BYTES(CFA_ADVANCE_LOC1, 0x40, CFA_DEF_CFA_OFFSET, 16), "10000-10040 " ENTRY "\n");
    expect(BYTES(CFA_ADVANCE_LOC4, 0xff, 0xff, 0xff, 0xff, CFA_DEF_CFA_OFFSET, 16), "10000-10040 " ENTRY "\n");
    expect(BYTES(CFA_MIPS_ADVANCE_LOC8, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, CFA_DEF_CFA_OFFSET, 16),
           "10000-10040 " ENTRY "\n");
    expect(BYTES(CFA_ADVANCE_LOC1, 0x3f, CFA_DEF_CFA_OFFSET, 16, CFA_ADVANCE_LOC | 1, CFA_DEF_CFA_OFFSET, 24),
           "10000-1003f " ENTRY "\n1003f-10040 cfa=rsp+16 ra=[cfa-8] fp=same\n");
}
END_TEST

START_TEST(an_advance_by_nothing_makes_no_row)
{
    expect(BYTES(CFA_DEF_CFA_OFFSET, 16, CFA_ADVANCE_LOC, CFA_DEF_CFA_OFFSET, 24),
           "10000-10040 cfa=rsp+24 ra=[cfa-8] fp=same\n");
}
END_TEST

START_TEST(set_loc_moves_forward)
{
    expect(BYTES(CFA_SET_LOC, 0x10, 0, 1, 0, 0, 0, 0, 0, CFA_DEF_CFA_OFFSET, 16),
           "10000-10010 " ENTRY "\n10010-10040 cfa=rsp+16 ra=[cfa-8] fp=same\n");
}
END_TEST

START_TEST(set_loc_backward_or_outside_is_malformed)
{
    expect(BYTES(CFA_ADVANCE_LOC | 8, CFA_SET_LOC, 7, 0, 1, 0, 0, 0, 0, 0, CFA_DEF_CFA_OFFSET, 16),
           "10000-10008 " ENTRY "\n10008-10040 refused: BAD_PROGRAM\n");
    expect(BYTES(CFA_ADVANCE_LOC | 8, CFA_SET_LOC, 0x41, 0, 1, 0, 0, 0, 0, 0, CFA_DEF_CFA_OFFSET, 16),
           "10000-10008 " ENTRY "\n10008-10040 refused: BAD_PROGRAM\n");
    expect(BYTES(CFA_SET_LOC, 0, 0, 0, 0, 0, 0, 0, 0), "10000-10040 refused: BAD_PROGRAM\n");
}
END_TEST

START_TEST(defines_the_cfa)
{
    expect(BYTES(CFA_DEF_CFA, RBP, 16), "10000-10040 cfa=rbp+16 ra=[cfa-8] fp=same\n");
    expect(BYTES(CFA_DEF_CFA_SF, RBP, 0x7e), "10000-10040 cfa=rbp+16 ra=[cfa-8] fp=same\n"); // -2 * -8
    expect(BYTES(CFA_DEF_CFA_SF, RBP, 2), "10000-10040 cfa=rbp-16 ra=[cfa-8] fp=same\n");
    expect(BYTES(CFA_DEF_CFA_REGISTER, RBP), "10000-10040 cfa=rbp+8 ra=[cfa-8] fp=same\n");
    expect(BYTES(CFA_DEF_CFA_OFFSET, 0x90, 1), "10000-10040 cfa=rsp+144 ra=[cfa-8] fp=same\n");
    expect(BYTES(CFA_DEF_CFA_OFFSET_SF, 0x7d), "10000-10040 cfa=rsp+24 ra=[cfa-8] fp=same\n"); // -3 * -8
}
END_TEST

START_TEST(saves_registers)
{
    const char *saved = "10000-10040 cfa=rsp+8 ra=[cfa-8] fp=[cfa-16]\n";
    expect(BYTES(CFA_OFFSET | RBP, 2), saved);
    expect(BYTES(CFA_OFFSET_EXTENDED, RBP, 2), saved);
    expect(BYTES(CFA_OFFSET_EXTENDED_SF, RBP, 2), saved);
    expect(BYTES(CFA_OFFSET_EXTENDED_SF, RBP, 0x7e), "10000-10040 cfa=rsp+8 ra=[cfa-8] fp=[cfa+16]\n");
    expect(BYTES(CFA_GNU_NEGATIVE_OFFSET_EXTENDED, RBP, 2), "10000-10040 cfa=rsp+8 ra=[cfa-8] fp=[cfa+16]\n");
    expect(BYTES(CFA_OFFSET | R12, 3), "10000-10040 cfa=rsp+8 ra=[cfa-8] fp=same r12=[cfa-24]\n");
}
END_TEST

START_TEST(values_from_the_cfa)
{
    expect(BYTES(CFA_VAL_OFFSET, RBP, 2), "10000-10040 cfa=rsp+8 ra=[cfa-8] fp=cfa-16\n");
    expect(BYTES(CFA_VAL_OFFSET_SF, RBP, 0x7e), "10000-10040 cfa=rsp+8 ra=[cfa-8] fp=cfa+16\n");
    expect(BYTES(CFA_VAL_OFFSET_SF, RSP, 0x7f), "10000-10040 cfa=rsp+8 ra=[cfa-8] fp=same sp=cfa+8\n");
}
END_TEST

START_TEST(a_register_in_a_register)
{
    expect(BYTES(CFA_REGISTER, RBP, 10), "10000-10040 cfa=rsp+8 ra=[cfa-8] fp=r10\n");
    expect(BYTES(CFA_REGISTER, RIP, 2), "10000-10040 cfa=rsp+8 ra=rcx fp=same\n");
    expect(BYTES(CFA_REGISTER, RBP, 17), "10000-10040 refused: REGISTER_RANGE\n");
    expect(BYTES(CFA_REGISTER, 1, 17), "10000-10040 " ENTRY "\n"); // rdx does not matter
}
END_TEST

// What a call tracer says of the code that functions return to.
START_TEST(a_shadow_of_the_stack)
{
    const char *shadow = "10000-10040 cfa=rsp+8 ra=[cfa-16-2^46] fp=same sp=rsp\n";
    // (2^46 + 16) / 8 = 2^43 + 2, as LEB128.
    expect(BYTES(CFA_OFFSET | RIP, 0x82, 0x80, 0x80, 0x80, 0x80, 0x80, 2, CFA_VAL_EXPRESSION, RSP, 2, 0x70 + RSP, 0),
           shadow);
    expect(BYTES(CFA_OFFSET_EXTENDED_SF, RIP, 0x82, 0x80, 0x80, 0x80, 0x80, 0x80, 2, CFA_SAME_VALUE, RSP), shadow);
    // consts -2^46 - 16; plus
    expect(BYTES(CFA_EXPRESSION, RIP, 9, 0x11, 0xf0, 0xff, 0xff, 0xff, 0xff, 0xff, 0x6f, 0x22, CFA_SAME_VALUE, RSP),
           shadow);
    // The other way, and a place that is none: 2^46 + 2^20 away.
    expect(BYTES(CFA_OFFSET_EXTENDED_SF, RIP, 0x80, 0x80, 0x80, 0x80, 0x80, 0x80, 0x7e),
           "10000-10040 refused: OFFSET_RANGE\n");
    expect(BYTES(CFA_OFFSET | RIP, 0x80, 0x80, 0x88, 0x80, 0x80, 0x80, 2), "10000-10040 refused: OFFSET_RANGE\n");
}
END_TEST

START_TEST(undefined_and_same)
{
    expect(BYTES(CFA_UNDEFINED, RBP), "10000-10040 cfa=rsp+8 ra=[cfa-8] fp=undefined\n");
    expect(BYTES(CFA_OFFSET | RBP, 2, CFA_SAME_VALUE, RBP), "10000-10040 " ENTRY "\n");
    expect(BYTES(CFA_UNDEFINED, RIP), "10000-10040 cfa=rsp+8 ra=undefined (outermost frame) fp=same\n");
    expect(BYTES(CFA_UNDEFINED, RSP), "10000-10040 cfa=rsp+8 ra=[cfa-8] fp=same sp=undefined\n");
    // The stack pointer of the caller is the cfa unless a rule says otherwise.
    expect(BYTES(CFA_SAME_VALUE, RSP), "10000-10040 cfa=rsp+8 ra=[cfa-8] fp=same sp=rsp\n");
    // Nothing holds the return address: it is not in a register on x86.
    expect(BYTES(CFA_SAME_VALUE, RIP), "10000-10040 refused: RA_LOST\n");
}
END_TEST

START_TEST(restore_means_the_cies_rule)
{
    static const uint8_t initial[] = {CFA_DEF_CFA, RSP, 8, CFA_OFFSET | RIP, 1, CFA_OFFSET | RBP, 4};
    struct frame_asm a = frame_asm(&arch_x86_64, INPUT_FRAME_EH);
    struct frame_cie cie = {.program = initial, .program_size = sizeof initial};
    frame_add_cie(&a, &cie);
    frame_add_fde(
        &a, &(struct frame_fde){.cie = &cie,
                                .size = 0x10,
                                .program = BYTES(CFA_SAME_VALUE, RBP, CFA_OFFSET | RBX, 2, CFA_ADVANCE_LOC | 4,
                                                 CFA_RESTORE | RBP, CFA_ADVANCE_LOC | 4, CFA_RESTORE_EXTENDED, RBX)});
    expect_rows(&a, "10000-10004 cfa=rsp+8 ra=[cfa-8] fp=same rbx=[cfa-16]\n"
                    "10004-10008 cfa=rsp+8 ra=[cfa-8] fp=[cfa-32] rbx=[cfa-16]\n"
                    "10008-10010 cfa=rsp+8 ra=[cfa-8] fp=[cfa-32]\n");
}
END_TEST

START_TEST(remembers_the_cfa_too)
{
    expect(BYTES(CFA_OFFSET | RBP, 2, CFA_DEF_CFA, RBP, 16, CFA_REMEMBER_STATE, CFA_ADVANCE_LOC | 4, CFA_DEF_CFA, RSP,
                 8, CFA_RESTORE | RBP, CFA_ADVANCE_LOC | 4, CFA_RESTORE_STATE),
           "10000-10004 cfa=rbp+16 ra=[cfa-8] fp=[cfa-16]\n"
           "10004-10008 " ENTRY "\n"
           "10008-10040 cfa=rbp+16 ra=[cfa-8] fp=[cfa-16]\n");
}
END_TEST

START_TEST(argument_sizes_concern_nobody)
{
    expect(BYTES(CFA_GNU_ARGS_SIZE, 0x90, 1, CFA_DEF_CFA_OFFSET, 16), "10000-10040 cfa=rsp+16 ra=[cfa-8] fp=same\n");
}
END_TEST

START_TEST(unknown_instructions_end_the_trust)
{
    // 0x2d is the signing of return addresses on aarch64, and a register window elsewhere.
    static const uint8_t unknown[] = {0x17, 0x1c, 0x2b, 0x2c, 0x2d, 0x30, 0x3f};
    for (size_t i = 0; i < sizeof unknown; i++)
        expect(BYTES(CFA_ADVANCE_LOC | 4, unknown[i], CFA_ADVANCE_LOC | 4, CFA_DEF_CFA_OFFSET, 16),
               "10000-10004 " ENTRY "\n10004-10040 refused: BAD_PROGRAM\n");
}
END_TEST

START_TEST(operands_cut_off)
{
    static const uint8_t ops[] = {
        CFA_ADVANCE_LOC1,       CFA_ADVANCE_LOC2,   CFA_ADVANCE_LOC4,       CFA_SET_LOC,
        CFA_MIPS_ADVANCE_LOC8,  CFA_OFFSET | RBP,   CFA_OFFSET_EXTENDED,    CFA_RESTORE_EXTENDED,
        CFA_UNDEFINED,          CFA_SAME_VALUE,     CFA_REGISTER,           CFA_DEF_CFA,
        CFA_DEF_CFA_REGISTER,   CFA_DEF_CFA_OFFSET, CFA_DEF_CFA_EXPRESSION, CFA_EXPRESSION,
        CFA_OFFSET_EXTENDED_SF, CFA_DEF_CFA_SF,     CFA_DEF_CFA_OFFSET_SF,  CFA_VAL_OFFSET,
        CFA_VAL_OFFSET_SF,      CFA_VAL_EXPRESSION, CFA_GNU_ARGS_SIZE,      CFA_GNU_NEGATIVE_OFFSET_EXTENDED};
    for (size_t i = 0; i < sizeof ops; i++)
        expect(BYTES(CFA_ADVANCE_LOC | 4, ops[i]), "10000-10004 " ENTRY "\n10004-10040 refused: BAD_PROGRAM\n");
    expect(BYTES(CFA_DEF_CFA_EXPRESSION, 3, OP_LIT0), "10000-10040 refused: BAD_PROGRAM\n");
    expect(BYTES(CFA_OFFSET | RBP, 0x80), "10000-10040 refused: BAD_PROGRAM\n");
}
END_TEST

START_TEST(a_location_moves_no_initial_state)
{
    static const uint8_t initial[][4] = {{CFA_ADVANCE_LOC | 1, CFA_DEF_CFA, RSP, 8},
                                         {CFA_REMEMBER_STATE, CFA_DEF_CFA, RSP, 8},
                                         {CFA_RESTORE | RBP, CFA_DEF_CFA, RSP, 8}};
    for (size_t i = 0; i < sizeof initial / sizeof *initial; i++) {
        struct frame_asm a = frame_asm(&arch_x86_64, INPUT_FRAME_EH);
        struct frame_cie cie = {.program = initial[i], .program_size = sizeof initial[i]};
        frame_add_cie(&a, &cie);
        frame_add_fde(&a, &(struct frame_fde){.cie = &cie, .size = 0x10});
        expect_rows(&a, "10000-10010 refused: BAD_PROGRAM\n");
    }
}
END_TEST

START_TEST(changes_of_an_undefined_cfa)
{
    struct frame_asm a = frame_asm(&arch_x86_64, INPUT_FRAME_EH);
    struct frame_cie cie = {.program = (const uint8_t[]){CFA_OFFSET | RIP, 1}, .program_size = 2};
    frame_add_cie(&a, &cie);
    frame_add_fde(&a, &(struct frame_fde){.cie = &cie,
                                          .size = 0x10,
                                          .program = BYTES(CFA_ADVANCE_LOC | 4, CFA_DEF_CFA_OFFSET, 16,
                                                           CFA_ADVANCE_LOC | 4, CFA_DEF_CFA_REGISTER, RSP)});
    expect_rows(&a, "10000-10008 refused: CFA_UNDEFINED\n10008-10010 cfa=rsp+0 ra=[cfa-8] fp=same\n");
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("frame instructions");
    TCase *tests = tcase_create("x86-64");
    tcase_add_test(tests, an_empty_program_is_the_initial_state);
    tcase_add_test(tests, advances_in_every_width);
    tcase_add_test(tests, what_lies_past_the_end_describes_nothing);
    tcase_add_test(tests, an_advance_by_nothing_makes_no_row);
    tcase_add_test(tests, set_loc_moves_forward);
    tcase_add_test(tests, set_loc_backward_or_outside_is_malformed);
    tcase_add_test(tests, defines_the_cfa);
    tcase_add_test(tests, saves_registers);
    tcase_add_test(tests, values_from_the_cfa);
    tcase_add_test(tests, a_register_in_a_register);
    tcase_add_test(tests, a_shadow_of_the_stack);
    tcase_add_test(tests, undefined_and_same);
    tcase_add_test(tests, restore_means_the_cies_rule);
    tcase_add_test(tests, remembers_the_cfa_too);
    tcase_add_test(tests, argument_sizes_concern_nobody);
    tcase_add_test(tests, unknown_instructions_end_the_trust);
    tcase_add_test(tests, operands_cut_off);
    tcase_add_test(tests, a_location_moves_no_initial_state);
    tcase_add_test(tests, changes_of_an_undefined_cfa);
    suite_add_tcase(suite, tests);
    return run_suite(suite);
}
