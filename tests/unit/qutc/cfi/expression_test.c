// SPDX-License-Identifier: Apache-2.0
// Expressions: the forms that occur in real binaries become rules, all others become refusals.
#include "tests/unit/qutc/cfi/expect.h"

enum { RAX = 0, RBP = 6, RSP = 7, R9 = 9, RIP = 16, OP_BREG = OP_BREG0, OP_LIT = OP_LIT0 };

// One FDE whose CFA, or whose rbp, is an expression.
static void expect_cfa(const struct arch *arch, const uint8_t *ops, size_t size, const char *expected)
{
    struct build_buffer program = {0};
    frame_put(&program, CFA_DEF_CFA_EXPRESSION, 1);
    frame_put_uleb(&program, size);
    build_add(&program, ops, size);
    expect_program(arch, program.data, program.size, expected);
    free(program.data);
}

static void expect_register(uint8_t op, uint64_t reg, const uint8_t *ops, size_t size, const char *expected)
{
    struct build_buffer program = {0};
    frame_put(&program, op, 1);
    frame_put_uleb(&program, reg);
    frame_put_uleb(&program, size);
    build_add(&program, ops, size);
    expect_program(&arch_x86_64, program.data, program.size, expected);
    free(program.data);
}

#define X64            &arch_x86_64
#define NOT_A_CFA      "10000-10040 refused: CFA_EXPRESSION\n"
#define NOT_A_REGISTER "10000-10040 refused: REGISTER_EXPRESSION\n"

START_TEST(the_plt)
{
    expect_cfa(
        X64,
        BYTES(OP_BREG + RSP, 8, OP_BREG + RIP, 0, OP_LIT + 15, OP_AND, OP_LIT + 11, OP_GE, OP_LIT + 3, OP_SHL, OP_PLUS),
        "10000-10040 cfa=rsp+8+8*((pc&15)>=11) ra=[cfa-8] fp=same\n");
    // i386's, with its own registers and factor
    expect_cfa(
        &arch_x86,
        BYTES(OP_BREG + 4, 4, OP_BREG + 8, 0, OP_LIT + 15, OP_AND, OP_LIT + 11, OP_GE, OP_LIT + 2, OP_SHL, OP_PLUS),
        "10000-10040 cfa=esp+4+4*((pc&15)>=11) ra=[cfa-4] fp=same\n");
    // the masked register is not the program counter
    expect_cfa(
        X64,
        BYTES(OP_BREG + RSP, 8, OP_BREG + RAX, 0, OP_LIT + 15, OP_AND, OP_LIT + 11, OP_GE, OP_LIT + 3, OP_SHL, OP_PLUS),
        NOT_A_CFA);
    // where the pc is in no column, nothing can name it
    expect_cfa(
        &arch_aarch64,
        BYTES(OP_BREG + 31, 8, OP_BREG + 30, 0, OP_LIT + 15, OP_AND, OP_LIT + 11, OP_GE, OP_LIT + 3, OP_SHL, OP_PLUS),
        NOT_A_CFA);
}
END_TEST

START_TEST(registers_and_offsets)
{
    const char *rbp16 = "10000-10040 cfa=rbp+16 ra=[cfa-8] fp=same\n";
    expect_cfa(X64, BYTES(OP_BREG + RBP, 16), rbp16);
    expect_cfa(X64, BYTES(OP_BREGX, RBP, 16), rbp16);
    expect_cfa(X64, BYTES(OP_BREG + RBP, 8, OP_LIT + 8, OP_PLUS), rbp16);
    expect_cfa(X64, BYTES(OP_BREG + RBP, 24, OP_LIT + 8, OP_MINUS), rbp16);
    expect_cfa(X64, BYTES(OP_LIT + 16, OP_BREG + RBP, 0, OP_PLUS), rbp16);
    expect_cfa(X64, BYTES(OP_BREG + RBP, 0, OP_PLUS_UCONST, 16), rbp16);
    expect_cfa(X64, BYTES(OP_BREG + RBP, 0, OP_CONST1U, 16, OP_PLUS), rbp16);
    expect_cfa(X64, BYTES(OP_BREG + RBP, 20, OP_CONST1S, 0xfc, OP_PLUS), rbp16);
    expect_cfa(X64, BYTES(OP_BREG + RBP, 0, OP_CONST2U, 16, 0, OP_PLUS), rbp16);
    expect_cfa(X64, BYTES(OP_BREG + RBP, 20, OP_CONST2S, 0xfc, 0xff, OP_PLUS), rbp16);
    expect_cfa(X64, BYTES(OP_BREG + RBP, 0, OP_CONST4U, 16, 0, 0, 0, OP_PLUS), rbp16);
    expect_cfa(X64, BYTES(OP_BREG + RBP, 20, OP_CONST4S, 0xfc, 0xff, 0xff, 0xff, OP_PLUS), rbp16);
    expect_cfa(X64, BYTES(OP_BREG + RBP, 0, OP_CONST8U, 16, 0, 0, 0, 0, 0, 0, 0, OP_PLUS), rbp16);
    expect_cfa(X64, BYTES(OP_BREG + RBP, 0, OP_CONSTU, 16, OP_PLUS), rbp16);
    expect_cfa(X64, BYTES(OP_BREG + RBP, 17, OP_CONSTS, 0x7f, OP_PLUS), rbp16);
    expect_cfa(X64, BYTES(OP_BREG + RBP, 16, OP_NOP), rbp16);
    expect_cfa(X64, BYTES(OP_BREG + RBP, 16, OP_LIT, OP_DROP), rbp16);
}
END_TEST

START_TEST(loads)
{
    expect_cfa(X64, BYTES(OP_BREG + RBP, 0x78, OP_DEREF), "10000-10040 cfa=*(rbp-8)+0 ra=[cfa-8] fp=same\n"); // DRAP
    expect_cfa(X64, BYTES(OP_BREG + R9, 0x78, OP_DEREF, OP_PLUS_UCONST, 88),                                  // nterp
               "10000-10040 cfa=*(r9-8)+88 ra=[cfa-8] fp=same\n");
    expect_cfa(X64, BYTES(OP_BREG + RSP, 8, OP_BREG + RAX, 0, OP_LIT + 3, OP_SHL, OP_PLUS, OP_DEREF),
               "10000-10040 cfa=*(rsp+8*rax+8)+0 ra=[cfa-8] fp=same\n");
    expect_cfa(X64,
               BYTES(OP_BREG + RAX, 0, OP_LIT + 8, OP_MUL, OP_BREG + RSP, 0x78, OP_PLUS, OP_DEREF, OP_PLUS_UCONST, 8),
               "10000-10040 cfa=*(rsp+8*rax-8)+8 ra=[cfa-8] fp=same\n");
}
END_TEST

// Frames with room for vectors, whose size the machine says: clang's for riscv64, in Android's libc and in C++
// programs.
START_TEST(vectors)
{
#define R64   &arch_riscv64
#define VLENB OP_BREGX, 0xa2, 0x38, 0 // register 4096 + 0xc22
    enum { SP = 2, FP = 8 };
    expect_cfa(R64, BYTES(OP_BREG + SP, 0, OP_CONSTS, 0xb0, 1, OP_PLUS, OP_CONSTS, 2, VLENB, OP_MUL, OP_PLUS),
               "10000-10040 cfa=sp+176+2*vlenb ra=ra fp=same\n");
    expect_cfa(R64, BYTES(OP_BREG + FP, 0x70, VLENB, OP_LIT + 4, OP_MUL, OP_MINUS),
               "10000-10040 refused: CFA_EXPRESSION\n");
    expect_cfa(R64, BYTES(VLENB, OP_CONSTS, 0x7c, OP_MUL, OP_BREG + FP, 0x70, OP_PLUS),
               "10000-10040 cfa=s0-16-4*vlenb ra=ra fp=same\n");
    // (vlenb + 8) * 3 + sp + vlenb
    expect_cfa(R64, BYTES(OP_BREGX, 0xa2, 0x38, 8, OP_LIT + 3, OP_MUL, OP_BREG + SP, 0, OP_PLUS),
               "10000-10040 cfa=sp+24+3*vlenb ra=ra fp=same\n");
    expect_cfa(R64, BYTES(VLENB), NOT_A_CFA);                                             // of no stack
    expect_cfa(R64, BYTES(OP_BREG + SP, 0, VLENB, VLENB, OP_MUL, OP_PLUS), NOT_A_CFA);    // a square
    expect_cfa(R64, BYTES(OP_BREG + SP, 0, VLENB, OP_PLUS, VLENB, OP_PLUS), NOT_A_CFA);   // two terms
    expect_cfa(R64, BYTES(OP_BREG + SP, 0, VLENB, OP_PLUS, OP_DEREF), NOT_A_CFA);         // a load
    expect_cfa(R64, BYTES(OP_BREG + SP, 0, OP_BREGX, 0xa1, 0x38, 0, OP_PLUS), NOT_A_CFA); // vtype
    expect_cfa(&arch_aarch64, BYTES(OP_BREG + 31, 0, VLENB, OP_PLUS), NOT_A_CFA);         // has none
    expect_cfa(R64, BYTES(OP_BREG + SP, 0, VLENB, OP_CONST4U, 0, 0, 0, 0x80, OP_MUL, OP_PLUS),
               "10000-10040 refused: OFFSET_RANGE\n");
    // Nothing but a CFA is found so.
    expect_program(R64, BYTES(CFA_EXPRESSION, FP, 5, VLENB, OP_PLUS), NOT_A_REGISTER);
}
END_TEST

START_TEST(a_realigned_stack)
{
    // gcc's DRAP: the registers of the caller lie around rbp, the cfa in memory.
    expect_program(X64,
                   BYTES(CFA_DEF_CFA_EXPRESSION, 3, OP_BREG + RBP, 0x78, OP_DEREF, CFA_EXPRESSION, RBP, 2,
                         OP_BREG + RBP, 0, CFA_EXPRESSION, 12, 2, OP_BREG + RBP, 0x68),
                   "10000-10040 cfa=*(rbp-8)+0 ra=[cfa-8] fp=[rbp] r12=[rbp-24]\n");
    // libmvec: saved at ((cfa - 8) & -64) - 16
    expect_register(CFA_EXPRESSION, RBP, BYTES(OP_LIT + 8, OP_MINUS, OP_CONST1S, 0xc0, OP_AND, OP_LIT + 16, OP_MINUS),
                    "10000-10040 cfa=rsp+8 ra=[cfa-8] fp=[((cfa-8)&-64)-16]\n");
}
END_TEST

START_TEST(rules_of_registers)
{
    expect_register(CFA_EXPRESSION, RBP, BYTES(OP_PLUS_UCONST, 16), // begins with the cfa
                    "10000-10040 cfa=rsp+8 ra=[cfa-8] fp=[cfa+16]\n");
    expect_register(CFA_VAL_EXPRESSION, RBP, BYTES(OP_LIT + 16, OP_MINUS),
                    "10000-10040 cfa=rsp+8 ra=[cfa-8] fp=cfa-16\n");
    expect_register(CFA_VAL_EXPRESSION, RBP, BYTES(OP_BREG + R9, 8), "10000-10040 cfa=rsp+8 ra=[cfa-8] fp=r9+8\n");
    expect_register(CFA_VAL_EXPRESSION, RBP, BYTES(OP_BREG + RSP, 8, OP_DEREF),
                    "10000-10040 cfa=rsp+8 ra=[cfa-8] fp=[rsp+8]\n");
    expect_register(CFA_EXPRESSION, RIP, BYTES(OP_BREG + RAX, 0), "10000-10040 cfa=rsp+8 ra=[rax] fp=same\n");
    expect_register(CFA_EXPRESSION, RIP, BYTES(OP_BREG + RAX, 0, OP_DEREF), NOT_A_REGISTER);
    expect_register(CFA_VAL_EXPRESSION, RSP, BYTES(OP_BREG + RAX, 0, OP_LIT + 1, OP_SHL), NOT_A_REGISTER);
    // a register that no rule asks for
    expect_register(CFA_EXPRESSION, 1, BYTES(0xff), "10000-10040 cfa=rsp+8 ra=[cfa-8] fp=same\n");
}
END_TEST

START_TEST(all_else_is_refused)
{
    expect_cfa(X64, NULL, 0, NOT_A_CFA);
    expect_cfa(X64, BYTES(OP_LIT + 16), NOT_A_CFA);
    expect_cfa(X64, BYTES(OP_PLUS), NOT_A_CFA);
    expect_cfa(X64, BYTES(OP_DROP), NOT_A_CFA);
    expect_cfa(X64, BYTES(OP_BREG + RBP), NOT_A_CFA);                               // cut off
    expect_cfa(X64, BYTES(OP_BREG + 17, 0), NOT_A_CFA);                             // no such register
    expect_cfa(X64, BYTES(OP_BREGX, 0x87, 0x80, 0x80, 0x80, 0x10, 0), NOT_A_CFA);   // 2^32 + 7
    expect_cfa(X64, BYTES(OP_BREG + RBP, 0, OP_BREG + RSP, 0, OP_PLUS), NOT_A_CFA); // two bases
    expect_cfa(X64, BYTES(OP_BREG + RBP, 0, OP_DEREF, OP_DEREF), NOT_A_CFA);        // two loads
    expect_cfa(X64, BYTES(OP_BREG + RBP, 0, OP_LIT + 16, OP_SHL), NOT_A_CFA);       // scaled alone
    expect_cfa(X64, BYTES(OP_LIT + 8, OP_BREG + RBP, 0, OP_MINUS), NOT_A_CFA);      // 8 - rbp
    expect_cfa(X64, BYTES(OP_BREG + RBP, 0, OP_CONST1S, 0xf0, OP_AND), NOT_A_CFA);  // an aligned CFA
    expect_cfa(X64, BYTES(OP_BREG + RBP, 0, 0x12), NOT_A_CFA);                      // dup
    expect_cfa(X64, BYTES(OP_BREG + RBP, 0, 0x2f, 0xfd, 0xff), NOT_A_CFA);          // skip -3: a loop
    expect_cfa(X64, BYTES(OP_BREG + RBP, 0, 0x9c), NOT_A_CFA);                      // the cfa in its own definition
    expect_cfa(X64, BYTES(OP_BREG + RBP, 0, OP_CONST4U, 0, 0, 0, 0x80, OP_PLUS), "10000-10040 refused: OFFSET_RANGE\n");
}
END_TEST

START_TEST(long_expressions_end)
{
    uint8_t ops[4096];
    memset(ops, OP_NOP, sizeof ops);
    ops[0] = OP_BREG + RBP;
    ops[1] = 16;
    expect_cfa(X64, ops, 64, "10000-10040 cfa=rbp+16 ra=[cfa-8] fp=same\n");
    expect_cfa(X64, ops, sizeof ops, NOT_A_CFA);
    memset(ops, OP_LIT + 1, sizeof ops); // deeper than any stack
    expect_cfa(X64, ops, sizeof ops, NOT_A_CFA);
}
END_TEST

START_TEST(a_refused_cfa_lasts_until_it_is_defined_anew)
{
    expect_program(X64,
                   BYTES(CFA_DEF_CFA_EXPRESSION, 1, OP_LIT, CFA_ADVANCE_LOC | 4, CFA_DEF_CFA_OFFSET, 16,
                         CFA_ADVANCE_LOC | 4, CFA_DEF_CFA_REGISTER, RBP, CFA_ADVANCE_LOC | 4, CFA_DEF_CFA, RSP, 8),
                   "10000-1000c refused: CFA_EXPRESSION\n1000c-10040 cfa=rsp+8 ra=[cfa-8] fp=same\n");
    // A part of an expression cannot be changed: the instruction makes no sense.
    expect_program(
        X64, BYTES(CFA_DEF_CFA_EXPRESSION, 3, OP_BREG + RBP, 0, OP_DEREF, CFA_ADVANCE_LOC | 4, CFA_DEF_CFA_OFFSET, 16),
        "10000-10004 cfa=*(rbp+0)+0 ra=[cfa-8] fp=same\n10004-10040 refused: BAD_PROGRAM\n");
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("expressions");
    TCase *tests = tcase_create("forms");
    tcase_add_test(tests, the_plt);
    tcase_add_test(tests, registers_and_offsets);
    tcase_add_test(tests, loads);
    tcase_add_test(tests, vectors);
    tcase_add_test(tests, a_realigned_stack);
    tcase_add_test(tests, rules_of_registers);
    tcase_add_test(tests, all_else_is_refused);
    tcase_add_test(tests, long_expressions_end);
    tcase_add_test(tests, a_refused_cfa_lasts_until_it_is_defined_anew);
    suite_add_tcase(suite, tests);
    return run_suite(suite);
}
