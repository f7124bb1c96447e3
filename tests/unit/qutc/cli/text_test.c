// SPDX-License-Identifier: Apache-2.0
// Rules as text, one of each form.
#include <check.h>
#include <stdlib.h>
#include <string.h>

#include <qut/frame.h>

#include "qutc/table/rule_text.h"
#include "tests/support/run_suite.h"

enum { RAX = 0, RCX = 2, RBP = 6, RSP = 7, R10 = 10, R12 = 12, SLOT_RBP = 0, SLOT_RBX = 1, SLOT_R12 = 2 };

static struct qut_rule frame(uint8_t reg, int32_t offset_bytes)
{
    return (struct qut_rule){.kind = QUT_RULE_FRAME,
                             .dex_pc_reg = QUT_NO_REGISTER,
                             .cfa = {.reg = reg, .offset_bytes = offset_bytes},
                             .ra = {.how = QUT_REG_AT_CFA, .offset_bytes = -8}};
}

static void expect_on(const struct arch *arch, const struct qut_rule *rule, const char *wanted)
{
    char text[TABLE_RULE_TEXT_BYTES];
    ck_assert_str_eq(table_rule_text(arch, rule, text), wanted);
}

static void expect(const struct qut_rule *rule, const char *wanted)
{
    expect_on(&arch_x86_64, rule, wanted);
}

START_TEST(places)
{
    struct qut_rule rule = frame(RSP, 16);
    expect(&rule, "cfa=rsp+16 ra=[cfa-8] fp=same");
    rule.tracked[SLOT_RBP] = (struct qut_reg_rule){.how = QUT_REG_AT_CFA, .offset_bytes = -16};
    rule.tracked[SLOT_RBX] = (struct qut_reg_rule){.how = QUT_REG_UNDEFINED};
    rule.tracked[SLOT_R12] = (struct qut_reg_rule){.how = QUT_REG_IN_REG, .reg = RAX};
    expect(&rule, "cfa=rsp+16 ra=[cfa-8] fp=[cfa-16] rbx=undefined r12=rax");
    rule.tracked[SLOT_RBX] = (struct qut_reg_rule){.how = QUT_REG_AT_REG, .reg = RBP, .offset_bytes = -24};
    rule.tracked[SLOT_R12] = (struct qut_reg_rule){.how = QUT_REG_CFA_VALUE, .offset_bytes = 32};
    rule.sp = (struct qut_reg_rule){.how = QUT_REG_AT_REG, .reg = RSP, .offset_bytes = 160};
    expect(&rule, "cfa=rsp+16 ra=[cfa-8] fp=[cfa-16] rbx=[rbp-24] r12=cfa+32 sp=[rsp+160]");
    rule = frame(R10, 0);
    rule.tracked[SLOT_RBP] =
        (struct qut_reg_rule){.how = QUT_REG_AT_ALIGNED, .reg = 6, .bias_bytes = -16, .offset_bytes = 8};
    expect(&rule, "cfa=r10+0 ra=[cfa-8] fp=[((cfa-16)&-64)+8]");
    rule = frame(RSP, 8);
    rule.ra = (struct qut_reg_rule){.how = QUT_REG_AT_SHADOW, .reg = 46, .offset_bytes = -16};
    rule.sp = (struct qut_reg_rule){.how = QUT_REG_IN_REG, .reg = RSP};
    expect(&rule, "cfa=rsp+8 ra=[cfa-16-2^46] fp=same sp=rsp");
}
END_TEST

START_TEST(frame_addresses)
{
    struct qut_rule rule = frame(RBP, -8);
    rule.cfa.how = QUT_CFA_DEREF;
    expect(&rule, "cfa=*(rbp-8)+0 ra=[cfa-8] fp=same");
    rule.cfa = (struct qut_cfa){
        .how = QUT_CFA_INDEXED, .reg = RAX, .reg2 = RCX, .shift = 3, .offset_bytes = -8, .add_bytes = 16};
    expect(&rule, "cfa=*(rax+8*rcx-8)+16 ra=[cfa-8] fp=same");
    rule.cfa = (struct qut_cfa){
        .how = QUT_CFA_PLT, .reg = RSP, .shift = 3, .offset_bytes = 8, .plt = {.mask = 15, .threshold = 11}};
    expect(&rule, "cfa=rsp+8+8*((pc&15)>=11) ra=[cfa-8] fp=same");
    rule.cfa = (struct qut_cfa){.how = QUT_CFA_VECTOR, .reg = 2, .offset_bytes = 16, .vector_count = -2};
    expect_on(&arch_riscv64, &rule, "cfa=sp+16-2*vlenb ra=[cfa-8] fp=same");
    rule = frame(R10, 0);
    expect(&rule, "cfa=r10+0 ra=[cfa-8] fp=same");
}
END_TEST

START_TEST(ends_and_marks)
{
    struct qut_rule rule = frame(RSP, 8);
    rule.ra = (struct qut_reg_rule){.how = QUT_REG_UNDEFINED};
    rule.flags = QUT_RULE_SIGNAL | QUT_RULE_BODY_ONLY;
    rule.dex_pc_reg = R12;
    expect(&rule, "cfa=rsp+8 ra=undefined (outermost frame) fp=same dex-pc=r12 signal body-only");
    rule = frame(31, 0);
    rule.ra = (struct qut_reg_rule){.how = QUT_REG_SAME};
    rule.flags = QUT_RULE_RA_SIGNED;
    expect_on(&arch_aarch64, &rule, "cfa=sp+0 ra=x30 fp=same ra-signed");
    rule.flags |= QUT_RULE_RA_KEY_B;
    expect_on(&arch_aarch64, &rule, "cfa=sp+0 ra=x30 fp=same ra-signed-b");
    rule = (struct qut_rule){.kind = QUT_RULE_HOLE};
    expect(&rule, "hole");
}
END_TEST

START_TEST(each_refusal_has_a_name)
{
    for (unsigned i = QUT_REFUSED_NOT + 1; i < QUT_REFUSAL_END; i++) {
        ck_assert_str_ne(qut_refusal_name(i), "UNKNOWN_REASON");
        for (unsigned j = 0; j < i; j++)
            ck_assert_str_ne(qut_refusal_name(i), qut_refusal_name(j));
    }
    ck_assert_str_eq(qut_refusal_name(QUT_REFUSAL_END), "UNKNOWN_REASON");
    struct qut_rule rule = {.kind = QUT_RULE_REFUSED, .reason = QUT_REFUSED_CANTUNWIND};
    expect(&rule, "refused: CANTUNWIND");
}
END_TEST

// The longest there is, and numbers that no architecture has.
START_TEST(text_stays_in_bounds)
{
    struct qut_rule rule;
    memset(&rule, 0xff, sizeof rule);
    rule.kind = QUT_RULE_FRAME;
    rule.cfa.how = QUT_CFA_INDEXED;
    rule.cfa.offset_bytes = INT32_MIN;
    for (int i = 0; i < QUT_TRACKED_MAX; i++)
        rule.tracked[i] = (struct qut_reg_rule){.how = QUT_REG_AT_REG, .reg = 254, .offset_bytes = INT32_MIN};
    char text[TABLE_RULE_TEXT_BYTES];
    for (int id = QUT_ARCH_NONE + 1; id < QUT_ARCH_END; id++)
        ck_assert_uint_lt(strlen(table_rule_text(arch_by_id((enum qut_arch_id)id), &rule, text)), sizeof text - 1);
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("text");
    TCase *tests = tcase_create("text");
    suite_add_tcase(suite, tests);
    tcase_add_test(tests, places);
    tcase_add_test(tests, frame_addresses);
    tcase_add_test(tests, ends_and_marks);
    tcase_add_test(tests, each_refusal_has_a_name);
    tcase_add_test(tests, text_stays_in_bounds);
    return run_suite(suite);
}
