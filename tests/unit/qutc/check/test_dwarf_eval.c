// SPDX-License-Identifier: Apache-2.0
#include <check.h>
#include <dwarf.h>
#include <stdlib.h>

#include "qutc/check/dwarf_eval.h"
#include "tests/support/run_suite.h"

static bool read_word(void *context, uint64_t address, uint64_t *value)
{
    (void)context;
    *value = address == 0xbad ? 0 : address + 0x1122334455667700;
    return address != 0xbad;
}

static enum check_dwarf_result run(unsigned word_bytes, const uint8_t *bytes, size_t size, uint64_t *value)
{
    static struct arch_frame_regs frame = {
        .reg = {[3] = 0x3000, [7] = 0x7000, [32] = 0x20}, .valid = 0x100000088, .vector_bytes = 0x30};
    struct check_dwarf_machine machine = {
        .word_bytes = word_bytes,
        .frame = &frame,
        .vector_bytes_reg = 0x100,
        .has_cfa = true,
        .cfa = 0xcfa0,
        .read = read_word,
    };
    struct check_dwarf_op ops[64];
    unsigned count;
    if (!check_dwarf_decode((struct base_bytes){bytes, size}, word_bytes, ops, 64, &count))
        return CHECK_DWARF_UNKNOWN_OP;
    return check_dwarf_run(&machine, ops, count, value);
}

#define EXPECT_WORD(WORD, EXPECTED, ...)                                                                               \
    do {                                                                                                               \
        const uint8_t code[] = {__VA_ARGS__};                                                                          \
        uint64_t value = 0;                                                                                            \
        ck_assert_int_eq(run(WORD, code, sizeof code, &value), CHECK_DWARF_ADDRESS);                                   \
        ck_assert_uint_eq(value, EXPECTED);                                                                            \
    } while (0)
#define EXPECT(EXPECTED, ...) EXPECT_WORD(8, EXPECTED, __VA_ARGS__)
#define EXPECT_FAULT(RESULT, ...)                                                                                      \
    do {                                                                                                               \
        const uint8_t code[] = {__VA_ARGS__};                                                                          \
        uint64_t value;                                                                                                \
        ck_assert_int_eq(run(8, code, sizeof code, &value), RESULT);                                                   \
    } while (0)

START_TEST(constants)
{
    EXPECT(0, DW_OP_lit0);
    EXPECT(31, DW_OP_lit31);
    EXPECT(0xff, DW_OP_const1u, 0xff);
    EXPECT(UINT64_MAX, DW_OP_const1s, 0xff);
    EXPECT(0x8001, DW_OP_const2u, 0x01, 0x80);
    EXPECT((uint64_t)-0x7fff, DW_OP_const2s, 0x01, 0x80);
    EXPECT(0x80000001, DW_OP_const4u, 1, 0, 0, 0x80);
    EXPECT(0xffffffff80000001, DW_OP_const4s, 1, 0, 0, 0x80);
    EXPECT_WORD(4, 0x80000001, DW_OP_const4s, 1, 0, 0, 0x80);
    EXPECT(0x0807060504030201, DW_OP_const8u, 1, 2, 3, 4, 5, 6, 7, 8);
    EXPECT(0x0807060504030201, DW_OP_const8s, 1, 2, 3, 4, 5, 6, 7, 8);
    EXPECT(0x3fff, DW_OP_constu, 0xff, 0x7f);
    EXPECT(UINT64_MAX, DW_OP_consts, 0x7f);
    EXPECT(0x04030201, DW_OP_const1u, 9, DW_OP_drop, DW_OP_addr, 1, 2, 3, 4, 0, 0, 0, 0);
    EXPECT_WORD(4, 0x04030201, DW_OP_addr, 1, 2, 3, 4);
}
END_TEST

START_TEST(registers_and_memory)
{
    EXPECT(0x7008, DW_OP_breg7, 8);
    EXPECT(0x6ff8, DW_OP_breg7, 0x78);
    EXPECT(0x24, DW_OP_bregx, 32, 4);
    EXPECT(0xcfa0, DW_OP_call_frame_cfa);
    EXPECT(0x1122334455667710, DW_OP_lit16, DW_OP_deref);
    EXPECT_WORD(4, 0x55667710, DW_OP_lit16, DW_OP_deref);
    EXPECT(0x7710, DW_OP_lit16, DW_OP_deref_size, 2);
    EXPECT(0x55667710, DW_OP_lit16, DW_OP_deref_size, 4);
    EXPECT_FAULT(CHECK_DWARF_NO_REGISTER, DW_OP_breg4, 0);
    EXPECT_FAULT(CHECK_DWARF_NO_REGISTER, DW_OP_bregx, 0x80, 0x01, 0);
    EXPECT(0x31, DW_OP_bregx, 0x80, 0x02, 1);
    EXPECT_FAULT(CHECK_DWARF_BAD_MEMORY, DW_OP_const2u, 0xad, 0x0b, DW_OP_deref);
    EXPECT_FAULT(CHECK_DWARF_BAD_PROGRAM, DW_OP_lit1, DW_OP_deref_size, 9);
    EXPECT_FAULT(CHECK_DWARF_VALUE, DW_OP_lit1, DW_OP_stack_value);
    EXPECT_FAULT(CHECK_DWARF_VALUE, DW_OP_reg7);
    EXPECT_FAULT(CHECK_DWARF_VALUE, DW_OP_regx, 3);
    EXPECT_FAULT(CHECK_DWARF_BAD_PROGRAM, DW_OP_lit1, DW_OP_stack_value, DW_OP_nop);
}
END_TEST

START_TEST(arithmetic)
{
    EXPECT(7, DW_OP_lit3, DW_OP_lit4, DW_OP_plus);
    EXPECT(UINT64_MAX, DW_OP_lit3, DW_OP_lit4, DW_OP_minus);
    EXPECT_WORD(4, UINT32_MAX, DW_OP_lit3, DW_OP_lit4, DW_OP_minus);
    EXPECT(131, DW_OP_lit3, DW_OP_plus_uconst, 0x80, 0x01);
    EXPECT(12, DW_OP_lit3, DW_OP_lit4, DW_OP_mul);
    EXPECT((uint64_t)-3, DW_OP_const1s, 0xf9, DW_OP_lit2, DW_OP_div);
    EXPECT_WORD(4, (uint32_t)-3, DW_OP_const1s, 0xf9, DW_OP_lit2, DW_OP_div);
    EXPECT((uint64_t)1 << 63, DW_OP_lit1, DW_OP_const1u, 63, DW_OP_shl, DW_OP_const1s, 0xff, DW_OP_div);
    EXPECT(3, DW_OP_const1u, 13, DW_OP_lit5, DW_OP_mod);
    EXPECT(4, DW_OP_lit12, DW_OP_lit6, DW_OP_and);
    EXPECT(14, DW_OP_lit12, DW_OP_lit6, DW_OP_or);
    EXPECT(10, DW_OP_lit12, DW_OP_lit6, DW_OP_xor);
    EXPECT(48, DW_OP_lit12, DW_OP_lit2, DW_OP_shl);
    EXPECT(0, DW_OP_lit12, DW_OP_const1u, 64, DW_OP_shl);
    EXPECT_WORD(4, 0, DW_OP_lit12, DW_OP_const1u, 32, DW_OP_shl);
    EXPECT(0x3fffffffffffffff, DW_OP_const1s, 0xff, DW_OP_lit2, DW_OP_shr);
    EXPECT(UINT64_MAX, DW_OP_const1s, 0xff, DW_OP_lit2, DW_OP_shra);
    EXPECT_WORD(4, UINT32_MAX, DW_OP_const1s, 0xfc, DW_OP_lit2, DW_OP_shra);
    EXPECT((uint64_t)-5, DW_OP_lit5, DW_OP_neg);
    EXPECT(~(uint64_t)5, DW_OP_lit5, DW_OP_not);
    EXPECT(5, DW_OP_const1s, 0xfb, DW_OP_abs);
    EXPECT_FAULT(CHECK_DWARF_BAD_PROGRAM, DW_OP_lit1, DW_OP_lit0, DW_OP_div);
    EXPECT_FAULT(CHECK_DWARF_BAD_PROGRAM, DW_OP_lit1, DW_OP_lit0, DW_OP_mod);
}
END_TEST

START_TEST(comparisons)
{
    static const struct {
        uint8_t atom;
        bool less, equal, greater; // results for -1 ? 2, 2 ? 2, 2 ? -1
    } rows[] = {{DW_OP_lt, 1, 0, 0}, {DW_OP_le, 1, 1, 0}, {DW_OP_gt, 0, 0, 1},
                {DW_OP_ge, 0, 1, 1}, {DW_OP_eq, 0, 1, 0}, {DW_OP_ne, 1, 0, 1}};
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        for (unsigned word = 4; word <= 8; word += 4) {
            EXPECT_WORD(word, rows[i].less, DW_OP_const1s, 0xff, DW_OP_lit2, rows[i].atom);
            EXPECT_WORD(word, rows[i].equal, DW_OP_lit2, DW_OP_lit2, rows[i].atom);
            EXPECT_WORD(word, rows[i].greater, DW_OP_lit2, DW_OP_const1s, 0xff, rows[i].atom);
        }
    }
}
END_TEST

START_TEST(stack)
{
    EXPECT(4, DW_OP_lit2, DW_OP_dup, DW_OP_plus);
    EXPECT(1, DW_OP_lit1, DW_OP_lit2, DW_OP_drop);
    EXPECT(1, DW_OP_lit1, DW_OP_lit2, DW_OP_over);
    EXPECT(1, DW_OP_lit2, DW_OP_lit1, DW_OP_swap, DW_OP_drop, DW_OP_nop);
    EXPECT(3, DW_OP_lit3, DW_OP_lit2, DW_OP_lit1, DW_OP_pick, 2);
    // rot: 1 2 3 -> 3 1 2
    EXPECT(2, DW_OP_lit1, DW_OP_lit2, DW_OP_lit3, DW_OP_rot);
    EXPECT(1, DW_OP_lit1, DW_OP_lit2, DW_OP_lit3, DW_OP_rot, DW_OP_drop);
    EXPECT(3, DW_OP_lit1, DW_OP_lit2, DW_OP_lit3, DW_OP_rot, DW_OP_drop, DW_OP_drop);
    EXPECT_FAULT(CHECK_DWARF_BAD_PROGRAM, DW_OP_nop);
    EXPECT_FAULT(CHECK_DWARF_BAD_PROGRAM, DW_OP_lit1, DW_OP_plus);
    EXPECT_FAULT(CHECK_DWARF_BAD_PROGRAM, DW_OP_lit1, DW_OP_pick, 1);
    EXPECT_FAULT(CHECK_DWARF_BAD_PROGRAM, DW_OP_lit1, DW_OP_dup, DW_OP_skip, 0xfc, 0xff);
}
END_TEST

START_TEST(branches)
{
    // skip over a literal; bra taken and not taken; a branch to the very end
    EXPECT(1, DW_OP_lit1, DW_OP_skip, 1, 0, DW_OP_lit2, DW_OP_nop);
    EXPECT(5, DW_OP_lit5, DW_OP_lit1, DW_OP_bra, 2, 0, DW_OP_drop, DW_OP_lit6, DW_OP_nop);
    EXPECT(6, DW_OP_lit5, DW_OP_lit0, DW_OP_bra, 2, 0, DW_OP_drop, DW_OP_lit6, DW_OP_nop);
    EXPECT(5, DW_OP_lit5, DW_OP_lit1, DW_OP_bra, 2, 0, DW_OP_drop, DW_OP_lit6);
    // a loop: 5 - 1 until 0
    EXPECT(0, DW_OP_lit5, DW_OP_lit1, DW_OP_minus, DW_OP_dup, DW_OP_bra, 0xfa, 0xff);
    EXPECT_FAULT(CHECK_DWARF_BAD_PROGRAM, DW_OP_skip, 0xfd, 0xff);
    EXPECT_FAULT(CHECK_DWARF_BAD_PROGRAM, DW_OP_skip, 1, 0, DW_OP_const1u, 1, DW_OP_nop);
    EXPECT_FAULT(CHECK_DWARF_UNKNOWN_OP, DW_OP_const4u, 1, 2);
    EXPECT_FAULT(CHECK_DWARF_UNKNOWN_OP, 0xff);
}
END_TEST

START_TEST(plt_expression)
{
    // gcc's: rsp + 8 + (((rip & 15) >= 11) << 3), here with registers 7 and 3
    const uint8_t code[] = {DW_OP_breg7, 8,        DW_OP_breg3, 0,         DW_OP_lit15, DW_OP_and,
                            DW_OP_lit11, DW_OP_ge, DW_OP_lit3,  DW_OP_shl, DW_OP_plus};
    uint64_t value;
    ck_assert_int_eq(run(8, code, sizeof code, &value), CHECK_DWARF_ADDRESS);
    ck_assert_uint_eq(value, 0x7008);
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("dwarf_eval");
    TCase *tcase = tcase_create("all");
    tcase_add_test(tcase, constants);
    tcase_add_test(tcase, registers_and_memory);
    tcase_add_test(tcase, arithmetic);
    tcase_add_test(tcase, comparisons);
    tcase_add_test(tcase, stack);
    tcase_add_test(tcase, branches);
    tcase_add_test(tcase, plt_expression);
    suite_add_tcase(suite, tcase);
    return run_suite(suite);
}
