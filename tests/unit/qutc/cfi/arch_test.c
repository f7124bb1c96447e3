// SPDX-License-Identifier: Apache-2.0
// What single architectures have for themselves: signed return addresses, return columns, dex pcs, signal frames.
#include "tests/unit/qutc/cfi/expect.h"

#define DEX(REG) 9, OP_CONST4U, 'D', 'E', 'X', '1', OP_DROP, OP_BREGX, (REG), 0

static void expect_with_cie(const struct arch *arch, struct frame_cie *cie, const uint8_t *program, size_t size,
                            const char *expected)
{
    struct frame_asm a = frame_asm(arch, INPUT_FRAME_EH);
    frame_add_cie(&a, cie);
    frame_add_fde(&a, &(struct frame_fde){.cie = cie, .size = 0x40, .program = program, .program_size = size});
    expect_rows(&a, expected);
}

START_TEST(signed_return_addresses)
{
    const uint8_t program[] = {CFA_ADVANCE_LOC | 4,
                               CFA_AARCH64_NEGATE_RA_STATE,
                               CFA_ADVANCE_LOC | 4,
                               CFA_DEF_CFA_OFFSET,
                               16,
                               CFA_OFFSET | 30,
                               1,
                               CFA_ADVANCE_LOC | 8,
                               CFA_RESTORE | 30,
                               CFA_DEF_CFA_OFFSET,
                               0,
                               CFA_AARCH64_NEGATE_RA_STATE};
    expect_program(&arch_aarch64, program, sizeof program,
                   "10000-10004 cfa=sp+0 ra=x30 fp=same\n"
                   "10004-10008 cfa=sp+0 ra=x30 fp=same ra-signed\n"
                   "10008-10010 cfa=sp+16 ra=[cfa-8] fp=same ra-signed\n"
                   "10010-10040 cfa=sp+0 ra=x30 fp=same\n");
    struct frame_cie key_b = {.augmentation = "zRB"};
    expect_with_cie(&arch_aarch64, &key_b, program, sizeof program,
                    "10000-10004 cfa=sp+0 ra=x30 fp=same\n"
                    "10004-10008 cfa=sp+0 ra=x30 fp=same ra-signed-b\n"
                    "10008-10010 cfa=sp+16 ra=[cfa-8] fp=same ra-signed-b\n"
                    "10010-10040 cfa=sp+0 ra=x30 fp=same\n");
}
END_TEST

START_TEST(a_remembered_signature)
{
    expect_program(&arch_aarch64,
                   BYTES(CFA_AARCH64_NEGATE_RA_STATE, CFA_REMEMBER_STATE, CFA_ADVANCE_LOC | 4,
                         CFA_AARCH64_NEGATE_RA_STATE, CFA_ADVANCE_LOC | 4, CFA_RESTORE_STATE),
                   "10000-10004 cfa=sp+0 ra=x30 fp=same ra-signed\n"
                   "10004-10008 cfa=sp+0 ra=x30 fp=same\n"
                   "10008-10040 cfa=sp+0 ra=x30 fp=same ra-signed\n");
}
END_TEST

START_TEST(nobody_else_signs)
{
    static const struct arch *const others[] = {&arch_x86_64, &arch_x86, &arch_arm, &arch_riscv64};
    for (size_t i = 0; i < sizeof others / sizeof *others; i++)
        expect_program(others[i], BYTES(CFA_AARCH64_NEGATE_RA_STATE), "10000-10040 refused: BAD_PROGRAM\n");
}
END_TEST

START_TEST(signal_frames)
{
    struct frame_cie cie = {.augmentation = "zRS"};
    expect_with_cie(&arch_x86_64, &cie, NULL, 0, "10000-10040 cfa=rsp+8 ra=[cfa-8] fp=same signal\n");
    struct frame_cie before = {.augmentation = "zSR"};
    expect_with_cie(&arch_aarch64, &before, NULL, 0, "10000-10040 cfa=sp+0 ra=x30 fp=same signal\n");
}
END_TEST

START_TEST(the_return_address_in_t0)
{
    // libgcc's millicode: __riscv_save_0 is called with its return address in t0.
    struct frame_cie cie = {.ra_column = 5};
    expect_with_cie(&arch_riscv64, &cie, BYTES(CFA_ADVANCE_LOC | 4, CFA_DEF_CFA_OFFSET, 16, CFA_OFFSET | 1, 1),
                    "10000-10004 cfa=sp+0 ra=t0 fp=same\n10004-10040 cfa=sp+16 ra=t0 fp=same\n");
    expect_with_cie(&arch_riscv64, &cie, BYTES(CFA_OFFSET | 5, 1, CFA_ADVANCE_LOC | 4, CFA_RESTORE | 5),
                    "10000-10004 cfa=sp+0 ra=[cfa-8] fp=same\n10004-10040 cfa=sp+0 ra=t0 fp=same\n");
}
END_TEST

START_TEST(return_columns_that_are_no_register)
{
    struct frame_cie version1 = {.ra_column = 0xff};
    expect_with_cie(&arch_aarch64, &version1, NULL, 0, "10000-10040 refused: REGISTER_RANGE\n");
    struct frame_cie huge = {.version = 3, .ra_column = ((uint64_t)1 << 63) + 30};
    expect_with_cie(&arch_aarch64, &huge, NULL, 0, "10000-10040 refused: REGISTER_RANGE\n");
    struct frame_cie wraps = {.version = 3, .ra_column = ((uint64_t)1 << 32) + 16};
    expect_with_cie(&arch_x86_64, &wraps, NULL, 0, "10000-10040 refused: REGISTER_RANGE\n");
}
END_TEST

START_TEST(return_columns_that_mean_two_things)
{
    struct frame_cie tracked = {.ra_column = 3}, stack = {.ra_column = 7}; // rbx, rsp
    expect_with_cie(&arch_x86_64, &tracked, NULL, 0, "10000-10040 refused: BAD_PROGRAM\n");
    expect_with_cie(&arch_x86_64, &stack, NULL, 0, "10000-10040 refused: BAD_PROGRAM\n");
}
END_TEST

START_TEST(factors_belong_to_their_cie)
{
    static const uint8_t program[] = {CFA_ADVANCE_LOC | 2, CFA_OFFSET | 29, 2, CFA_DEF_CFA_SF, 31, 0x7c};
    struct frame_asm a = frame_asm(&arch_aarch64, INPUT_FRAME_EH);
    struct frame_cie plain = {0}, scaled = {.code_align = 4, .data_align = -4}, same = {.code_align = 4};
    frame_add_cie(&a, &plain);
    frame_add_cie(&a, &scaled);
    frame_add_cie(&a, &same);
    struct frame_cie *const order[] = {&plain, &scaled, &same};
    for (size_t i = 0; i < 3; i++)
        frame_add_fde(
            &a,
            &(struct frame_fde){
                .cie = order[i], .start = 0x20 * i, .size = 0x20, .program = program, .program_size = sizeof program});
    expect_rows(&a, "10000-10002 cfa=sp+0 ra=x30 fp=same\n10002-10020 cfa=sp+32 ra=x30 fp=[cfa-16]\n"
                    "10020-10028 cfa=sp+0 ra=x30 fp=same\n10028-10040 cfa=sp+16 ra=x30 fp=[cfa-8]\n"
                    "10040-10048 cfa=sp+0 ra=x30 fp=same\n10048-10060 cfa=sp+32 ra=x30 fp=[cfa-16]\n");
}
END_TEST

START_TEST(dex_pcs)
{
    // The scratch register that carries the mark, and the dex pc's register, by architecture and interpreter.
    static const struct {
        const struct arch *arch;
        uint8_t mark, reg;
        const char *expected;
    } all[] = {
        {&arch_arm, 0, 4, "10000-10040 cfa=sp+0 ra=lr fp=same dex-pc=r4\n"},
        {&arch_arm, 0, 11, "10000-10040 cfa=sp+0 ra=lr fp=same dex-pc=r11\n"},
        {&arch_aarch64, 0, 20, "10000-10040 cfa=sp+0 ra=x30 fp=same dex-pc=x20\n"},
        {&arch_aarch64, 0, 19, "10000-10040 cfa=sp+0 ra=x30 fp=same dex-pc=x19\n"},
        {&arch_aarch64, 0, 22, "10000-10040 cfa=sp+0 ra=x30 fp=same dex-pc=x22\n"},
        {&arch_x86, 0, 6, "10000-10040 cfa=esp+4 ra=[cfa-4] fp=same dex-pc=esi\n"},
        {&arch_x86, 0, 3, "10000-10040 cfa=esp+4 ra=[cfa-4] fp=same dex-pc=ebx\n"},
        {&arch_x86_64, 5, 12, "10000-10040 cfa=rsp+8 ra=[cfa-8] fp=same dex-pc=r12\n"},
        {&arch_x86_64, 0, 3, "10000-10040 cfa=rsp+8 ra=[cfa-8] fp=same dex-pc=rbx\n"},
        {&arch_riscv64, 10, 9, "10000-10040 cfa=sp+0 ra=ra fp=same dex-pc=s1\n"},
    };
    for (size_t i = 0; i < sizeof all / sizeof *all; i++)
        expect_program(all[i].arch, BYTES(CFA_VAL_EXPRESSION, all[i].mark, DEX(all[i].reg)), all[i].expected);
}
END_TEST

START_TEST(a_dex_pc_ends_with_its_mark)
{
    expect_program(&arch_x86_64,
                   BYTES(CFA_REMEMBER_STATE, CFA_VAL_EXPRESSION, 5, DEX(12), CFA_ADVANCE_LOC | 4, CFA_DEF_CFA_OFFSET,
                         64, CFA_ADVANCE_LOC | 4, CFA_RESTORE | 5, CFA_ADVANCE_LOC | 4, CFA_RESTORE_STATE),
                   "10000-10004 cfa=rsp+8 ra=[cfa-8] fp=same dex-pc=r12\n"
                   "10004-10008 cfa=rsp+64 ra=[cfa-8] fp=same dex-pc=r12\n"
                   "10008-1000c cfa=rsp+64 ra=[cfa-8] fp=same\n"
                   "1000c-10040 cfa=rsp+8 ra=[cfa-8] fp=same\n");
}
END_TEST

START_TEST(marks_that_are_none)
{
    const char *plain = "10000-10040 cfa=rsp+8 ra=[cfa-8] fp=same\n";
    const struct arch *arch = &arch_x86_64;
    // no such register; another text; an offset; something behind it; a register that is saved, not a value
    expect_program(arch, BYTES(CFA_VAL_EXPRESSION, 5, DEX(17)), plain);
    expect_program(arch, BYTES(CFA_VAL_EXPRESSION, 5, 9, OP_CONST4U, 'D', 'E', 'X', '2', OP_DROP, OP_BREGX, 12, 0),
                   plain);
    expect_program(arch, BYTES(CFA_VAL_EXPRESSION, 5, 9, OP_CONST4U, 'D', 'E', 'X', '1', OP_DROP, OP_BREGX, 12, 1),
                   plain);
    expect_program(arch,
                   BYTES(CFA_VAL_EXPRESSION, 5, 10, OP_CONST4U, 'D', 'E', 'X', '1', OP_DROP, OP_BREGX, 12, 0, OP_NOP),
                   plain);
    expect_program(arch, BYTES(CFA_EXPRESSION, 5, DEX(12)), plain);
}
END_TEST

START_TEST(thumb_bits_are_no_addresses)
{
    struct frame_asm a = frame_asm(&arch_arm, INPUT_FRAME_DEBUG);
    struct frame_cie cie = {0};
    frame_add_cie(&a, &cie);
    frame_add_fde(&a, &(struct frame_fde){.cie = &cie, .start = 0x21, .size = 0x10});
    expect_rows(&a, "10020-10030 cfa=sp+0 ra=lr fp=same\n");
}
END_TEST

START_TEST(code_between_two_instructions)
{
    // An aarch64 program that moves by single bytes is nonsense, but what it says is kept.
    struct frame_asm a = frame_asm(&arch_aarch64, INPUT_FRAME_EH);
    struct frame_cie cie = {0};
    frame_add_cie(&a, &cie);
    frame_add_fde(
        &a, &(struct frame_fde){.cie = &cie, .size = 7, .program = BYTES(CFA_ADVANCE_LOC | 3, CFA_DEF_CFA_OFFSET, 16)});
    expect_rows(&a, "10000-10003 cfa=sp+0 ra=x30 fp=same\n10003-10007 cfa=sp+16 ra=x30 fp=same\n");
    a = frame_asm(&arch_aarch64, INPUT_FRAME_EH);
    frame_add_cie(&a, &cie);
    frame_add_fde(&a, &(struct frame_fde){.cie = &cie, .size = 7});
    expect_rows(&a, "10000-10007 cfa=sp+0 ra=x30 fp=same\n");
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("architectures");
    TCase *tests = tcase_create("frame programs");
    tcase_add_test(tests, signed_return_addresses);
    tcase_add_test(tests, a_remembered_signature);
    tcase_add_test(tests, nobody_else_signs);
    tcase_add_test(tests, signal_frames);
    tcase_add_test(tests, the_return_address_in_t0);
    tcase_add_test(tests, return_columns_that_are_no_register);
    tcase_add_test(tests, return_columns_that_mean_two_things);
    tcase_add_test(tests, factors_belong_to_their_cie);
    tcase_add_test(tests, dex_pcs);
    tcase_add_test(tests, a_dex_pc_ends_with_its_mark);
    tcase_add_test(tests, marks_that_are_none);
    tcase_add_test(tests, thumb_bits_are_no_addresses);
    tcase_add_test(tests, code_between_two_instructions);
    suite_add_tcase(suite, tests);
    return run_suite(suite);
}
