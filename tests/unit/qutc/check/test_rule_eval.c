// SPDX-License-Identifier: Apache-2.0
#include <check.h>
#include <stdlib.h>
#include <string.h>

#include "libqut/runtime/rule_eval.h"
#include "tests/support/run_suite.h"

// Memory: a word is its address plus a mark; 0xdead0000 to 0xdeadffff cannot be read.
static bool read_word(void *context, uint64_t address, uint64_t *value)
{
    (void)context;
    *value = address + 0x100000000000100;
    return address >> 16 != 0xdead;
}

static const struct arch *const x86_64 = &arch_x86_64; // sp 7, ra 16, tracked 6 3 12 13 14 15

static struct arch_frame_regs frame_of(const struct arch *arch)
{
    struct arch_frame_regs frame = {.pc = 0x40001b};
    for (unsigned i = 0; i < arch->register_count; i++) {
        frame.reg[i] = 0x1000 * (i + 1);
        frame.valid |= (uint64_t)1 << i;
    }
    return frame;
}

// cfa = sp + 16, ra = *(cfa - 8)
static struct qut_rule usual_rule(void)
{
    return (struct qut_rule){.kind = QUT_RULE_FRAME,
                             .dex_pc_reg = QUT_NO_REGISTER,
                             .cfa = {.how = QUT_CFA_REG, .reg = 7, .offset_bytes = 16},
                             .ra = {.how = QUT_REG_AT_CFA, .offset_bytes = -8}};
}

static enum runtime_eval_result eval(const struct arch *arch, const struct qut_rule *rule,
                                     const struct arch_frame_regs *frame, struct arch_frame_regs *caller, uint64_t *cfa)
{
    memset(caller, 0xa5, sizeof *caller);
    return runtime_rule_eval(arch, rule, frame, read_word, NULL, caller, cfa);
}

START_TEST(usual)
{
    struct qut_rule rule = usual_rule();
    rule.tracked[0] = (struct qut_reg_rule){.how = QUT_REG_AT_CFA, .offset_bytes = -16};
    struct arch_frame_regs frame = frame_of(x86_64), caller;
    uint64_t cfa;
    ck_assert_int_eq(eval(x86_64, &rule, &frame, &caller, &cfa), RUNTIME_EVAL_OK);
    ck_assert_uint_eq(cfa, 0x8010);
    ck_assert_uint_eq(caller.pc, 0x8008 + 0x100000000000100);
    ck_assert_uint_eq(caller.reg[7], 0x8010);
    ck_assert_uint_eq(caller.reg[6], 0x8000 + 0x100000000000100);
    ck_assert_uint_eq(caller.reg[3], 0x4000);
    ck_assert_uint_eq(caller.reg[15], 0x10000);
    // sp and the tracked registers, nothing else
    ck_assert_uint_eq(caller.valid, 1 << 7 | 1 << 6 | 1 << 3 | 0xf << 12);

    ck_assert_int_eq(runtime_rule_eval(x86_64, &rule, &frame, read_word, NULL, &frame, NULL), RUNTIME_EVAL_OK);
    ck_assert_uint_eq(frame.pc, caller.pc);
    ck_assert_uint_eq(frame.reg[6], caller.reg[6]);
    ck_assert_uint_eq(frame.valid, caller.valid);
}
END_TEST

static uint64_t cfa_of(struct qut_cfa cfa)
{
    struct qut_rule rule = usual_rule();
    rule.cfa = cfa;
    struct arch_frame_regs frame = frame_of(x86_64), caller;
    uint64_t value;
    ck_assert_int_eq(eval(x86_64, &rule, &frame, &caller, &value), RUNTIME_EVAL_OK);
    ck_assert_uint_eq(caller.reg[7], value);
    return value;
}

START_TEST(every_cfa)
{
    ck_assert_uint_eq(cfa_of((struct qut_cfa){.how = QUT_CFA_REG, .reg = 10, .offset_bytes = -8}), 0xaff8);
    ck_assert_uint_eq(cfa_of((struct qut_cfa){.how = QUT_CFA_DEREF, .reg = 6, .offset_bytes = -8, .add_bytes = 24}),
                      0x6ff8 + 0x100000000000100 + 24);
    ck_assert_uint_eq(cfa_of((struct qut_cfa){
                          .how = QUT_CFA_INDEXED, .reg = 7, .reg2 = 9, .shift = 3, .offset_bytes = -8, .add_bytes = 8}),
                      0x8000 + (0xa000 << 3) - 8 + 0x100000000000100 + 8);
    // pc & 15 = 11
    struct qut_cfa plt = {.how = QUT_CFA_PLT, .reg = 7, .shift = 3, .offset_bytes = 8, .plt = {.mask = 15}};
    plt.plt.threshold = 11;
    ck_assert_uint_eq(cfa_of(plt), 0x8010);
    plt.plt.threshold = 12;
    ck_assert_uint_eq(cfa_of(plt), 0x8008);
}
END_TEST

START_TEST(a_cfa_that_vectors_move)
{
    const struct arch *riscv64 = &arch_riscv64;
    struct qut_rule rule = usual_rule();
    rule.cfa = (struct qut_cfa){.how = QUT_CFA_VECTOR, .reg = 2, .offset_bytes = 176, .vector_count = 2};
    struct arch_frame_regs frame = frame_of(riscv64), caller;
    uint64_t cfa;
    ck_assert_int_eq(eval(riscv64, &rule, &frame, &caller, &cfa), RUNTIME_EVAL_NO_REGISTER);
    frame.vector_bytes = 32;
    ck_assert_int_eq(eval(riscv64, &rule, &frame, &caller, &cfa), RUNTIME_EVAL_OK);
    ck_assert_uint_eq(cfa, frame.reg[2] + 176 + 64);
    rule.cfa.vector_count = -3;
    ck_assert_int_eq(eval(riscv64, &rule, &frame, &caller, &cfa), RUNTIME_EVAL_OK);
    ck_assert_uint_eq(cfa, frame.reg[2] + 176 - 96);
}
END_TEST

START_TEST(every_register_rule)
{
    struct arch_frame_regs frame = frame_of(x86_64), caller;
    struct qut_rule rule = usual_rule();
    rule.sp = (struct qut_reg_rule){.how = QUT_REG_CFA_VALUE, .offset_bytes = -16};
    rule.ra = (struct qut_reg_rule){.how = QUT_REG_AT_REG, .reg = 6, .offset_bytes = 8};
    rule.tracked[0] = (struct qut_reg_rule){.how = QUT_REG_UNDEFINED};
    rule.tracked[1] = (struct qut_reg_rule){.how = QUT_REG_IN_REG, .reg = 8, .offset_bytes = -1};
    rule.tracked[2] = (struct qut_reg_rule){.how = QUT_REG_AT_REG, .reg = 3};
    rule.tracked[3] = (struct qut_reg_rule){.how = QUT_REG_CFA_VALUE, .offset_bytes = 4};
    ck_assert_int_eq(eval(x86_64, &rule, &frame, &caller, NULL), RUNTIME_EVAL_OK);
    ck_assert_uint_eq(caller.reg[7], 0x8000);
    ck_assert_uint_eq(caller.pc, 0x7008 + 0x100000000000100);
    ck_assert_uint_eq(caller.valid >> 6 & 1, 0);
    ck_assert_uint_eq(caller.reg[3], 0x8fff);
    ck_assert_uint_eq(caller.reg[12], 0x4000 + 0x100000000000100);
    ck_assert_uint_eq(caller.reg[13], 0x8014);

    rule.ra = (struct qut_reg_rule){.how = QUT_REG_SAME};
    ck_assert_int_eq(eval(x86_64, &rule, &frame, &caller, NULL), RUNTIME_EVAL_OK);
    ck_assert_uint_eq(caller.pc, frame.reg[16]);

    rule.ra = (struct qut_reg_rule){.how = QUT_REG_AT_SHADOW, .reg = 46, .offset_bytes = -16};
    ck_assert_int_eq(eval(x86_64, &rule, &frame, &caller, NULL), RUNTIME_EVAL_OK);
    ck_assert_uint_eq(caller.pc, 0x8000 - ((uint64_t)1 << 46) + 0x100000000000100);

    rule.sp = (struct qut_reg_rule){.how = QUT_REG_UNDEFINED};
    ck_assert_int_eq(eval(x86_64, &rule, &frame, &caller, NULL), RUNTIME_EVAL_OK);
    ck_assert_uint_eq(caller.valid >> 7 & 1, 0);
}
END_TEST

START_TEST(refusals)
{
    struct arch_frame_regs frame = frame_of(x86_64), caller;
    uint64_t cfa = 0;
    struct qut_rule rule = usual_rule();
    rule.ra.how = QUT_REG_UNDEFINED;
    ck_assert_int_eq(eval(x86_64, &rule, &frame, &caller, &cfa), RUNTIME_EVAL_END);
    ck_assert_uint_eq(cfa, 0x8010);

    rule.kind = QUT_RULE_HOLE;
    ck_assert_int_eq(eval(x86_64, &rule, &frame, &caller, &cfa), RUNTIME_EVAL_NO_RULE);
    rule.kind = QUT_RULE_REFUSED;
    ck_assert_int_eq(eval(x86_64, &rule, &frame, &caller, &cfa), RUNTIME_EVAL_NO_RULE);

    rule = usual_rule();
    rule.cfa.reg = 40;
    ck_assert_int_eq(eval(x86_64, &rule, &frame, &caller, &cfa), RUNTIME_EVAL_NO_REGISTER);
    rule.cfa.reg = 10;
    frame.valid &= ~(uint64_t)(1 << 10);
    ck_assert_int_eq(eval(x86_64, &rule, &frame, &caller, &cfa), RUNTIME_EVAL_NO_REGISTER);

    rule = usual_rule();
    frame.reg[7] = 0xdead0000;
    ck_assert_int_eq(eval(x86_64, &rule, &frame, &caller, &cfa), RUNTIME_EVAL_BAD_MEMORY);

    // A tracked register that cannot be found is not known; the walk goes on.
    frame = frame_of(x86_64);
    rule = usual_rule();
    rule.tracked[0] = (struct qut_reg_rule){.how = QUT_REG_AT_CFA, .offset_bytes = 0x7fffffff};
    rule.tracked[1] = (struct qut_reg_rule){.how = QUT_REG_AT_REG, .reg = 16};
    frame.reg[16] = 0xdead0000;
    ck_assert_int_eq(eval(x86_64, &rule, &frame, &caller, &cfa), RUNTIME_EVAL_OK);
    ck_assert_uint_eq(caller.valid >> 6 & 1, 1);
    ck_assert_uint_eq(caller.valid >> 3 & 1, 0);
}
END_TEST

START_TEST(words_wrap)
{
    const struct arch *arm = &arch_arm;
    struct arch_frame_regs frame = frame_of(arm), caller;
    frame.reg[13] = 0xfffffff8;
    uint64_t cfa;
    struct qut_rule rule = {.kind = QUT_RULE_FRAME, .cfa = {.how = QUT_CFA_REG, .reg = 13, .offset_bytes = 16}};
    ck_assert_int_eq(eval(arm, &rule, &frame, &caller, &cfa), RUNTIME_EVAL_OK);
    ck_assert_uint_eq(cfa, 8);
    ck_assert_uint_eq(caller.pc, frame.reg[14]);
    rule.ra = (struct qut_reg_rule){.how = QUT_REG_AT_CFA, .offset_bytes = 4};
    ck_assert_int_eq(eval(arm, &rule, &frame, &caller, &cfa), RUNTIME_EVAL_OK);
    ck_assert_uint_eq(caller.pc, 0x10c); // the memory's word, cut to 32 bits
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("rule_eval");
    TCase *tcase = tcase_create("all");
    tcase_add_test(tcase, usual);
    tcase_add_test(tcase, every_cfa);
    tcase_add_test(tcase, a_cfa_that_vectors_move);
    tcase_add_test(tcase, every_register_rule);
    tcase_add_test(tcase, refusals);
    tcase_add_test(tcase, words_wrap);
    suite_add_tcase(suite, tcase);
    return run_suite(suite);
}
