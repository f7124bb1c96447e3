// SPDX-License-Identifier: Apache-2.0
// Every instruction of the EHABI's table, each with the rule worked out by hand from the table's text.
#include <check.h>
#include <string.h>

#include "qutc/cfi/ehabi.h"
#include "qutc/cfi/rule_set.h"
#include "tests/unit/qutc/cfi/exidx/suites.h"

enum { SP = 13, REGISTERS_MAX = 8, BYTES_MAX = 16 };

struct found_register {
    uint8_t reg;
    struct qut_reg_rule rule;
};

struct vector {
    const char *name;
    enum qut_refusal refusal; // else all of the below
    struct qut_cfa cfa;
    struct qut_reg_rule ra;
    struct found_register registers[REGISTERS_MAX];
    uint8_t flags;
    size_t size;
    uint8_t bytes[BYTES_MAX];
};

#define CODE(...)        .size = sizeof((uint8_t[]){__VA_ARGS__}), .bytes = {__VA_ARGS__}
#define CFA(REG, OFFSET) .cfa = {.how = QUT_CFA_REG, .reg = (REG), .offset_bytes = (OFFSET)}
#define DEREF(REG, OFFSET, ADD)                                                                                        \
    .cfa = {.how = QUT_CFA_DEREF, .reg = (REG), .offset_bytes = (OFFSET), .add_bytes = (ADD)}
#define AT_CFA(OFFSET)                                                                                                 \
    {                                                                                                                  \
        .how = QUT_REG_AT_CFA, .offset_bytes = (OFFSET)                                                                \
    }
#define AT_REG(REG, OFFSET)                                                                                            \
    {                                                                                                                  \
        .how = QUT_REG_AT_REG, .reg = (REG), .offset_bytes = (OFFSET)                                                  \
    }
#define REFUSED(REASON) .refusal = QUT_REFUSED_##REASON

static const struct vector vectors[] = {
    {"nothing", CFA(SP, 0), .size = 0},
    {"finish", CFA(SP, 0), CODE(0xb0)},
    {"finish ends", CFA(SP, 4), CODE(0x00, 0xb0, 0x00)},
    {"nothing after finish is looked at", CFA(SP, 0), CODE(0xb0, 0x9d)},
    {"vsp + 4", CFA(SP, 4), CODE(0x00)},
    {"vsp + 256", CFA(SP, 256), CODE(0x3f)},
    {"vsp - 4", CFA(SP, -4), CODE(0x40)},
    {"vsp - 256", CFA(SP, -256), CODE(0x7f)},

    {"refuse to unwind", REFUSED(CANTUNWIND), CODE(0x80, 0x00)},
    {"pop r7", CFA(SP, 4), .registers = {{7, AT_CFA(-4)}}, CODE(0x80, 0x08)},
    {"pop r4 r5 r7 lr", CFA(SP, 16), .ra = AT_CFA(-4),
     .registers = {{4, AT_CFA(-16)}, {5, AT_CFA(-12)}, {7, AT_CFA(-8)}}, CODE(0x84, 0x0b)},
    {"pop r7 pc", CFA(SP, 8), .ra = AT_CFA(-4), .registers = {{7, AT_CFA(-8)}}, CODE(0x88, 0x08)},
    {"pop lr pc: ra is pc's", CFA(SP, 8), .ra = AT_CFA(-4), CODE(0x8c, 0x00)},
    {"pop pc, then lr: ra is pc's", CFA(SP, 8), .ra = AT_CFA(-8), CODE(0x88, 0x00, 0x84, 0x00)},
    {"pop r9: not tracked", CFA(SP, 4), CODE(0x80, 0x20)},
    {"pop r12: not tracked", CFA(SP, 4), CODE(0x81, 0x00)},
    {"pop r4 twice: the last counts", CFA(SP, 8), .registers = {{4, AT_CFA(-4)}}, CODE(0xa0, 0xa0)},
    {"pop sp", DEREF(SP, 0, 0), CODE(0x82, 0x00)},
    {"pop r4 sp lr: sp is written back last", DEREF(SP, 4, 0), .ra = AT_REG(SP, 8), .registers = {{4, AT_REG(SP, 0)}},
     CODE(0x86, 0x01)},

    {"a signal handler's return: + 32, pop r0-r3, pop r4-pc", DEREF(SP, 84, 0), .ra = AT_REG(SP, 92),
     .registers = {{4, AT_REG(SP, 48)},
                   {5, AT_REG(SP, 52)},
                   {6, AT_REG(SP, 56)},
                   {7, AT_REG(SP, 60)},
                   {8, AT_REG(SP, 64)},
                   {10, AT_REG(SP, 72)},
                   {11, AT_REG(SP, 76)}},
     .flags = QUT_RULE_SIGNAL, CODE(0x07, 0xb1, 0x0f, 0x8f, 0xff)},

    {"vsp = r7", CFA(7, 0), CODE(0x97)},
    {"vsp = r12", CFA(12, 0), CODE(0x9c)},
    {"vsp = lr", CFA(14, 0), CODE(0x9e)},
    {"vsp = sp: reserved", REFUSED(EXIDX_OPCODE), CODE(0x9d)},
    {"vsp = pc: reserved", REFUSED(EXIDX_OPCODE), CODE(0x9f)},
    {"vsp = r7, - 8, pop r11 lr", CFA(7, 0), .ra = AT_CFA(-4), .registers = {{11, AT_CFA(-8)}},
     CODE(0x97, 0x41, 0x84, 0x80)},
    {"vsp = r11, - 12, pop r4-r11 lr", CFA(11, 24), .ra = AT_CFA(-4),
     .registers = {{4, AT_CFA(-36)},
                   {5, AT_CFA(-32)},
                   {6, AT_CFA(-28)},
                   {7, AT_CFA(-24)},
                   {8, AT_CFA(-20)},
                   {10, AT_CFA(-12)},
                   {11, AT_CFA(-8)}},
     CODE(0x9b, 0x42, 0xaf)},
    {"pop r4 lr, vsp = r7: two bases", CFA(7, 0), .ra = AT_REG(SP, 4), .registers = {{4, AT_REG(SP, 0)}},
     CODE(0xa8, 0x97)},
    {"pop r7, vsp = r7, + 8: the popped value", DEREF(SP, 0, 8), .registers = {{7, AT_REG(SP, 0)}},
     CODE(0x80, 0x08, 0x97, 0x01)},
    {"pop r7, vsp = r7, pop lr", DEREF(SP, 0, 4), .ra = AT_CFA(-4), .registers = {{7, AT_REG(SP, 0)}},
     CODE(0x80, 0x08, 0x97, 0x84, 0x00)},
    {"a word through a word", REFUSED(CFA_EXPRESSION), CODE(0x80, 0x08, 0x97, 0x80, 0x80, 0x9b)},
    {"r4 through a word that is not the CFA's", REFUSED(REGISTER_EXPRESSION), CODE(0x80, 0x08, 0x97, 0xa0, 0x9b)},
    {"the same, not tracked", CFA(11, 0), .registers = {{7, AT_REG(SP, 0)}}, CODE(0x80, 0x08, 0x97, 0x80, 0x20, 0x9b)},

    {"pop r4", CFA(SP, 4), .registers = {{4, AT_CFA(-4)}}, CODE(0xa0)},
    {"pop r4-r11", CFA(SP, 32),
     .registers = {{4, AT_CFA(-32)},
                   {5, AT_CFA(-28)},
                   {6, AT_CFA(-24)},
                   {7, AT_CFA(-20)},
                   {8, AT_CFA(-16)},
                   {10, AT_CFA(-8)},
                   {11, AT_CFA(-4)}},
     CODE(0xa7)},
    {"pop r4 lr", CFA(SP, 8), .ra = AT_CFA(-4), .registers = {{4, AT_CFA(-8)}}, CODE(0xa8)},
    {"+ 4, pop r4-r6 lr", CFA(SP, 20), .ra = AT_CFA(-4),
     .registers = {{4, AT_CFA(-16)}, {5, AT_CFA(-12)}, {6, AT_CFA(-8)}}, CODE(0x00, 0xaa)},

    {"pop r0-r3", CFA(SP, 16), CODE(0xb1, 0x0f)},
    {"pop r1", CFA(SP, 4), CODE(0xb1, 0x02)},
    {"pop none of r0-r3: spare", REFUSED(EXIDX_OPCODE), CODE(0xb1, 0x00)},
    {"pop r0-r3 with high bits: spare", REFUSED(EXIDX_OPCODE), CODE(0xb1, 0x11)},

    {"vsp + 0x204", CFA(SP, 516), CODE(0xb2, 0x00)},
    {"vsp + 0x204 + 4*4", CFA(SP, 532), CODE(0xb2, 0x04)},
    {"vsp + 0x204 + 4*129", CFA(SP, 1032), CODE(0xb2, 0x81, 0x01)},
    {"vsp + 0x204 + 4*0x1fffff7e: the largest", CFA(SP, 0x7ffffffc), CODE(0xb2, 0xfe, 0xfe, 0xff, 0xff, 0x01)},
    {"vsp + 0x204 + 4*0x1fffff7f", REFUSED(OFFSET_RANGE), CODE(0xb2, 0xff, 0xfe, 0xff, 0xff, 0x01)},
    {"vsp + 4*0xffffffff", REFUSED(OFFSET_RANGE), CODE(0xb2, 0xff, 0xff, 0xff, 0xff, 0x0f)},
    {"a number above 64 bits", REFUSED(OFFSET_RANGE),
     CODE(0xb2, 0x80, 0x80, 0x80, 0x80, 0x80, 0x80, 0x80, 0x80, 0x80, 0x80, 0x01)},

    {"pop d8-d9, FSTMFDX", CFA(SP, 20), CODE(0xb3, 0x81)},
    {"pop d15, FSTMFDX", CFA(SP, 12), CODE(0xb3, 0xf0)},
    {"pop d15-d16, FSTMFDX", REFUSED(REGISTER_RANGE), CODE(0xb3, 0xf1)},
    {"pop ra_auth_code", CFA(SP, 4), .flags = QUT_RULE_RA_SIGNED, CODE(0xb4)},
    {"vsp is ra_auth_code's modifier", CFA(SP, 0), CODE(0xb5)},
    {"0xb6: spare", REFUSED(EXIDX_OPCODE), CODE(0xb6)},
    {"0xb7: spare", REFUSED(EXIDX_OPCODE), CODE(0xb7)},
    {"pop d8, FSTMFDX", CFA(SP, 12), CODE(0xb8)},
    {"pop d8-d15, FSTMFDX", CFA(SP, 68), CODE(0xbf)},

    {"pop wR10", CFA(SP, 8), CODE(0xc0)},
    {"pop wR10-wR15", CFA(SP, 48), CODE(0xc5)},
    {"pop wR10-wR11", CFA(SP, 16), CODE(0xc6, 0xa1)},
    {"pop wR15-wR16", REFUSED(REGISTER_RANGE), CODE(0xc6, 0xf1)},
    {"pop wCGR0-wCGR3", CFA(SP, 16), CODE(0xc7, 0x0f)},
    {"pop wCGR0 wCGR2", CFA(SP, 8), CODE(0xc7, 0x05)},
    {"pop no wCGR: spare", REFUSED(EXIDX_OPCODE), CODE(0xc7, 0x00)},
    {"pop wCGR with high bits: spare", REFUSED(EXIDX_OPCODE), CODE(0xc7, 0x11)},
    {"pop d16-d17", CFA(SP, 16), CODE(0xc8, 0x01)},
    {"pop d16-d31", CFA(SP, 128), CODE(0xc8, 0x0f)},
    {"pop d31-d32", REFUSED(REGISTER_RANGE), CODE(0xc8, 0xf1)},
    {"pop d8-d9", CFA(SP, 16), CODE(0xc9, 0x81)},
    {"pop d15-d30", CFA(SP, 128), CODE(0xc9, 0xff)},
    {"0xca: spare", REFUSED(EXIDX_OPCODE), CODE(0xca)},
    {"0xcf: spare", REFUSED(EXIDX_OPCODE), CODE(0xcf)},
    {"pop d8", CFA(SP, 8), CODE(0xd0)},
    {"pop d8-d15", CFA(SP, 64), CODE(0xd7)},
    {"0xd8: spare", REFUSED(EXIDX_OPCODE), CODE(0xd8)},
    {"0xff: spare", REFUSED(EXIDX_OPCODE), CODE(0xff)},
    {"pop d8-d9, + 4, pop r4-r5 lr", CFA(SP, 32), .ra = AT_CFA(-4), .registers = {{4, AT_CFA(-12)}, {5, AT_CFA(-8)}},
     CODE(0xc9, 0x81, 0x00, 0xa9)},

    {"0x80 cut", REFUSED(EXIDX_TRUNCATED), CODE(0x80)},
    {"0xb1 cut", REFUSED(EXIDX_TRUNCATED), CODE(0xb1)},
    {"0xb2 cut", REFUSED(EXIDX_TRUNCATED), CODE(0xb2)},
    {"0xb2 cut inside its number", REFUSED(EXIDX_TRUNCATED), CODE(0xb2, 0x80)},
    {"0xb3 cut", REFUSED(EXIDX_TRUNCATED), CODE(0xb3)},
    {"0xc6 cut", REFUSED(EXIDX_TRUNCATED), CODE(0xc6)},
    {"0xc7 cut", REFUSED(EXIDX_TRUNCATED), CODE(0xc7)},
    {"0xc8 cut", REFUSED(EXIDX_TRUNCATED), CODE(0xc8)},
    {"0xc9 cut", REFUSED(EXIDX_TRUNCATED), CODE(0xc9)},
};

static struct qut_rule expected_rule(const struct vector *vector)
{
    if (vector->refusal)
        return cfi_rule_refused(vector->refusal);
    struct qut_rule rule = {.kind = QUT_RULE_FRAME,
                            .flags = (uint8_t)(QUT_RULE_BODY_ONLY | vector->flags),
                            .dex_pc_reg = QUT_NO_REGISTER,
                            .cfa = vector->cfa,
                            .ra = vector->ra};
    for (size_t i = 0; i < REGISTERS_MAX && vector->registers[i].reg; i++) {
        int slot = arch_slot(&arch_arm, vector->registers[i].reg);
        ck_assert_int_ge(slot, 0);
        rule.tracked[slot] = vector->registers[i].rule;
    }
    return rule;
}

START_TEST(instruction_gives_its_rule)
{
    const struct vector *vector = &vectors[_i];
    struct qut_rule rule = cfi_ehabi_rule(&arch_arm, (struct base_bytes){vector->bytes, vector->size});
    struct qut_rule expected = expected_rule(vector);
    ck_assert_msg(memcmp(&rule, &expected, sizeof rule) == 0, "%s: kind %d reason %d cfa %d r%d%+d%+d ra %d r%d%+d",
                  vector->name, rule.kind, rule.reason, rule.cfa.how, rule.cfa.reg, rule.cfa.offset_bytes,
                  rule.cfa.add_bytes, rule.ra.how, rule.ra.reg, rule.ra.offset_bytes);
}
END_TEST

// However long the list, no more is looked at than an entry can hold, and nothing overflows.
START_TEST(longest_list_is_read_to_its_bound)
{
    static uint8_t bytes[CFI_EHABI_OPCODES_MAX + 1];
    memset(bytes, 0x3f, sizeof bytes);
    struct qut_rule rule = cfi_ehabi_rule(&arch_arm, (struct base_bytes){bytes, sizeof bytes});
    ck_assert_int_eq(rule.kind, QUT_RULE_FRAME);
    ck_assert_int_eq(rule.cfa.offset_bytes, 256 * CFI_EHABI_OPCODES_MAX);
}
END_TEST

// Any two bytes at all: an answer, and a refusal that carries nothing else.
START_TEST(every_pair_of_bytes_is_answered)
{
    for (unsigned pair = 0; pair < 0x10000; pair++) {
        const uint8_t bytes[] = {(uint8_t)(pair >> 8), (uint8_t)pair};
        struct qut_rule rule = cfi_ehabi_rule(&arch_arm, (struct base_bytes){bytes, sizeof bytes});
        ck_assert(rule.kind == QUT_RULE_FRAME || rule.kind == QUT_RULE_REFUSED);
        if (rule.kind == QUT_RULE_REFUSED) {
            struct qut_rule expected = cfi_rule_refused(rule.reason);
            ck_assert_mem_eq(&rule, &expected, sizeof rule);
        }
    }
}
END_TEST

Suite *opcodes_suite(void)
{
    Suite *suite = suite_create("ehabi");
    TCase *tcase = tcase_create("opcodes");
    tcase_add_loop_test(tcase, instruction_gives_its_rule, 0, (int)(sizeof vectors / sizeof *vectors));
    tcase_add_test(tcase, longest_list_is_read_to_its_bound);
    tcase_add_test(tcase, every_pair_of_bytes_is_answered);
    suite_add_tcase(suite, tcase);
    return suite;
}
