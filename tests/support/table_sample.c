// SPDX-License-Identifier: Apache-2.0
#include "tests/support/table_sample.h"

static uint32_t frame(struct maker *m, int32_t cfa_bytes)
{
    struct qut_rule rule = maker_plain_rule(m, cfa_bytes);
    return maker_rule(m, &rule);
}

static uint32_t far_frame(struct maker *m)
{
    struct qut_rule rule = maker_plain_rule(m, 4096);
    rule.ra = (struct qut_reg_rule){.how = QUT_REG_AT_CFA, .offset_bytes = -4088};
    rule.tracked[0] = (struct qut_reg_rule){.how = QUT_REG_AT_CFA, .offset_bytes = -4096};
    rule.flags = QUT_RULE_RA_SIGNED;
    return maker_rule(m, &rule);
}

static uint32_t interpreter_frame(struct maker *m)
{
    struct qut_rule rule = maker_plain_rule(m, 0);
    rule.cfa = (struct qut_cfa){.how = QUT_CFA_DEREF, .reg = 25, .offset_bytes = -8, .add_bytes = 176};
    rule.dex_pc_reg = 22;
    return maker_rule(m, &rule);
}

static uint32_t long_frame(struct maker *m)
{
    struct qut_rule rule = maker_plain_rule(m, 3);
    rule.tracked[2] = (struct qut_reg_rule){.how = QUT_REG_AT_REG, .reg = 9, .offset_bytes = -123456};
    return maker_rule(m, &rule);
}

void sample_fill(struct maker *m)
{
    maker_init(m, &arch_aarch64, 1);
    struct qut_rule refused = cfi_rule_refused(QUT_REFUSED_CFA_EXPRESSION);
    const uint32_t entry = frame(m, 0), pushed = frame(m, 16), refusal = maker_rule(m, &refused);
    // Functions with one prologue, each padded to 32 bytes: shared as runs, and padded rules.
    uint32_t pc = 32;
    for (uint32_t i = 0; i < 24; i++) {
        maker_row(m, pc, entry);
        maker_row(m, pc + 4, pushed);
        maker_row(m, pc + 36, entry);
        maker_row(m, pc + 44, CFI_RULE_HOLE_ID);
        pc += 64;
    }
    // A crowded block, in no pattern that a run could state.
    const uint32_t crowd[] = {entry, pushed, CFI_RULE_HOLE_ID, refusal};
    pc = (pc + 1023) & ~UINT32_C(1023);
    for (uint32_t i = 0; i < 200; i++)
        maker_row(m, pc + 4 * i, crowd[(i * i * 2654435761u) >> 30]);
    pc += 2 * 1024;
    maker_row(m, pc, far_frame(m));
    maker_row(m, pc + 40, interpreter_frame(m));
    maker_row(m, pc + 400, long_frame(m));
    maker_row(m, pc + 404, refusal);
    maker_row(m, pc + 500, CFI_RULE_HOLE_ID);
    maker_row(m, pc + 3000, entry);
    m->text_size = pc + 3012;
    maker_row(m, m->text_size, CFI_RULE_HOLE_ID);
}
