// SPDX-License-Identifier: Apache-2.0
#include "tests/support/table_maker.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "qutc/table/rule_text.h"

static void must(bool good, const char *what)
{
    if (!good) {
        fprintf(stderr, "%s\n", what);
        abort();
    }
}

void maker_init(struct maker *m, const struct arch *arch, uint64_t seed)
{
    *m = (struct maker){.arch = arch, .random = seed * 0x9e3779b97f4a7c15u + 1};
    must(cfi_rule_set_init(&m->rules, NULL) == 0, "no memory");
}

void maker_free(struct maker *m)
{
    cfi_rule_set_free(&m->rules);
    cfi_row_list_free(&m->rows);
}

void maker_row(struct maker *m, uint32_t pc_rel, uint32_t rule_id)
{
    must(cfi_row_list_reserve(&m->rows, 1, NULL) == 0, "no memory");
    m->rows.rows[m->rows.count++] = (struct cfi_row){pc_rel, rule_id};
}

uint32_t maker_rule(struct maker *m, const struct qut_rule *rule)
{
    uint32_t id = cfi_rule_set_intern(&m->rules, rule);
    must(id != CFI_RULE_NO_MEMORY, "no memory");
    return id;
}

uint32_t maker_random(struct maker *m, uint32_t below)
{
    m->random ^= m->random << 13;
    m->random ^= m->random >> 7;
    m->random ^= m->random << 17;
    return (uint32_t)(m->random >> 32) % below;
}

struct qut_rule maker_plain_rule(const struct maker *m, int32_t cfa_bytes)
{
    struct qut_rule rule = {.kind = QUT_RULE_FRAME, .dex_pc_reg = QUT_NO_REGISTER};
    rule.cfa.reg = m->arch->sp_reg;
    rule.cfa.offset_bytes = cfa_bytes;
    if (!m->arch->ra_in_register)
        rule.ra = (struct qut_reg_rule){.how = QUT_REG_AT_CFA, .offset_bytes = -m->arch->word_bytes};
    return rule;
}

static int32_t random_offset(struct maker *m)
{
    int32_t word = m->arch->word_bytes;
    switch (maker_random(m, 8)) {
    case 0: return (int32_t)maker_random(m, 400) - 200;              // rarely a multiple of the word
    case 1: return word * ((int32_t)maker_random(m, 70000) - 35000); // around the bounds of 16 bits
    case 2: return (int32_t)(maker_random(m, UINT32_MAX));
    default: return word * ((int32_t)maker_random(m, 300) - 150);
    }
}

static struct qut_reg_rule random_place(struct maker *m)
{
    struct qut_reg_rule place = {0};
    uint32_t kind = maker_random(m, 40);
    if (kind < 15)
        return place;
    place.how = kind < 36 ? QUT_REG_AT_CFA : (uint8_t)maker_random(m, QUT_REG_HOW_END);
    switch (place.how) {
    case QUT_REG_SAME:
    case QUT_REG_UNDEFINED: return place;
    case QUT_REG_AT_ALIGNED:
        place.bias_bytes = -8;
        place.reg = (uint8_t)maker_random(m, 12);
        break;
    case QUT_REG_AT_SHADOW: // words of 4 bytes have none
        if (m->arch->word_bytes == 4)
            return (struct qut_reg_rule){0};
        place.reg = (uint8_t)(QUT_SHADOW_LOG2_MIN + maker_random(m, QUT_SHADOW_LOG2_MAX - QUT_SHADOW_LOG2_MIN + 1));
        break;
    case QUT_REG_AT_REG:
    case QUT_REG_IN_REG: place.reg = (uint8_t)maker_random(m, m->arch->register_count); break;
    default: break;
    }
    place.offset_bytes = random_offset(m);
    return place;
}

// Frames that keep their registers far below the cfa, as `stp x29, x30, [sp, -N]!` does.
static void save_far_away(struct maker *m, struct qut_rule *rule)
{
    int32_t far = -m->arch->word_bytes * (int32_t)(128 + maker_random(m, 30000));
    rule->cfa.offset_bytes = -far;
    rule->ra = (struct qut_reg_rule){.how = QUT_REG_AT_CFA, .offset_bytes = far + m->arch->word_bytes};
    rule->tracked[0] = (struct qut_reg_rule){.how = QUT_REG_AT_CFA, .offset_bytes = far};
    for (int i = 1; i < m->arch->tracked_count; i++)
        if (maker_random(m, 2))
            rule->tracked[i] = (struct qut_reg_rule){
                .how = QUT_REG_AT_CFA, .offset_bytes = far + m->arch->word_bytes * (int32_t)maker_random(m, 150)};
}

static void choose_cfa(struct maker *m, struct qut_cfa *cfa)
{
    uint32_t kind = maker_random(m, 12);
    cfa->how = kind < 8 ? QUT_CFA_REG : (uint8_t)maker_random(m, QUT_CFA_HOW_END);
    cfa->reg = (uint8_t)maker_random(m, m->arch->register_count);
    cfa->offset_bytes = random_offset(m);
    if (cfa->how == QUT_CFA_DEREF || cfa->how == QUT_CFA_INDEXED)
        cfa->add_bytes = random_offset(m);
    if (cfa->how == QUT_CFA_INDEXED) {
        cfa->reg2 = (uint8_t)maker_random(m, m->arch->register_count);
        cfa->shift = 3;
    }
    if (cfa->how == QUT_CFA_VECTOR)
        cfa->vector_count = random_offset(m);
    if (cfa->how == QUT_CFA_PLT) {
        cfa->shift = 3;
        cfa->plt.mask = 15;
        cfa->plt.threshold = 11;
    }
}

struct qut_rule maker_random_rule(struct maker *m)
{
    uint32_t kind = maker_random(m, 20);
    if (kind == 0)
        return cfi_rule_hole();
    if (kind == 1)
        return cfi_rule_refused((enum qut_refusal)(1 + maker_random(m, QUT_REFUSAL_END - 1)));
    struct qut_rule rule = maker_plain_rule(m, m->arch->word_bytes * (int32_t)maker_random(m, 64));
    if (kind < 6)
        return rule;
    if (kind < 8) {
        save_far_away(m, &rule);
        return rule;
    }
    choose_cfa(m, &rule.cfa);
    rule.ra = random_place(m);
    rule.flags = maker_random(m, 4) ? 0 : (uint8_t)maker_random(m, QUT_RULE_FLAGS_ALL + 1);
    if (maker_random(m, 10) == 0)
        rule.dex_pc_reg = (uint8_t)maker_random(m, m->arch->register_count);
    if (maker_random(m, 20) == 0)
        rule.sp = random_place(m);
    if (maker_random(m, 10) == 0)
        rule.origin = QUT_RULE_FROM_CODE;
    for (int i = 0; i < m->arch->tracked_count; i++)
        rule.tracked[i] = random_place(m);
    return rule;
}

struct made_table maker_table(const struct maker *m, bool small)
{
    struct base_error error = {0};
    struct cfi_row_list rows = {0};
    must(cfi_row_list_reserve(&rows, m->rows.count, &error) == 0, "no memory");
    memcpy(rows.rows, m->rows.rows, m->rows.count * sizeof *rows.rows);
    rows.count = m->rows.count;
    struct table_draft draft;
    must(table_draft_init(&draft, m->arch, MAKER_TEXT, MAKER_TEXT + m->text_size, &m->rules, &rows, &error) == 0,
         "no draft");
    must(table_draft_join_padding(&draft, &error) == 0, "no padding");
    must(!small || table_draft_share_runs(&draft, &error) == 0, "no runs");
    struct qut_table_header header = {.identity = {1, 2, 3}, .identity_size = 3};
    struct made_table made = {0};
    uint8_t *bytes = NULL;
    must(table_write(&draft, &header, &bytes, &made.size, &error) == 0, "no table");
    table_draft_free(&draft);
    made.bytes = aligned_alloc(64, (made.size + 63) & ~(size_t)63);
    must(made.bytes != NULL, "no memory");
    memcpy(made.bytes, bytes, made.size);
    free(bytes);
    uint64_t offset = 0;
    enum qut_table_fault fault = runtime_table_attach(&made.table, made.bytes, made.size, &offset);
    if (fault != QUT_TABLE_OK)
        fprintf(stderr, "%s at 0x%" PRIx64 "\n", qut_table_fault_name(fault), offset);
    must(fault == QUT_TABLE_OK, "a table that its checker refuses");
    return made;
}

void made_table_free(struct made_table *made)
{
    free(made->bytes);
    *made = (struct made_table){0};
}

static bool is(const struct maker *m, const struct qut_table *table, uint64_t pc, uint32_t rule_id)
{
    char got[TABLE_RULE_TEXT_BYTES], wanted[TABLE_RULE_TEXT_BYTES];
    struct qut_rule rule;
    memset(&rule, 0xa5, sizeof rule);
    runtime_table_rule(table, pc, &rule);
    if (memcmp(&rule, &m->rules.rules[rule_id], sizeof rule) == 0)
        return true;
    printf("0x%" PRIx64 ": got %s, wanted %s\n", pc, table_rule_text(m->arch, &rule, got),
           table_rule_text(m->arch, &m->rules.rules[rule_id], wanted));
    return false;
}

bool maker_agrees(const struct maker *m, const struct qut_table *table)
{
    size_t row = 0;
    uint32_t rule_id = CFI_RULE_HOLE_ID;
    for (uint32_t pc_rel = 0; pc_rel < m->text_size; pc_rel++) {
        while (row < m->rows.count && m->rows.rows[row].pc_rel <= pc_rel)
            rule_id = m->rows.rows[row++].rule_id;
        if (!is(m, table, MAKER_TEXT + (uint64_t)pc_rel, rule_id))
            return false;
    }
    const uint64_t end = MAKER_TEXT + (uint64_t)m->text_size;
    const uint64_t outside[] = {0, MAKER_TEXT - 1, end, end + 255, end + 65536, (uint64_t)1 << 32, UINT64_MAX};
    for (size_t i = 0; i < sizeof outside / sizeof *outside; i++)
        if (!is(m, table, outside[i], CFI_RULE_HOLE_ID))
            return false;
    return true;
}
