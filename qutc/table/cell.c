// SPDX-License-Identifier: Apache-2.0
#include "qutc/table/cell.h"

#include <string.h>

enum { SLOT_MIN = -127, SLOT_MAX = 127 };

static bool in_words(int32_t offset_bytes, int word_bytes, int min, int max, int *words)
{
    if (offset_bytes % word_bytes != 0)
        return false;
    *words = offset_bytes / word_bytes;
    return *words >= min && *words <= max;
}

// The slots are small numbers of words around an anchor. Almost always the anchor is the cfa itself (0); where a frame
// keeps its registers at its far end (`stp x29, x30, [sp, -N]!`) it is that end.
static bool place_slots(const struct arch *arch, const struct qut_rule *rule, bool anchor_free,
                        struct qut_rule_cell *cell)
{
    int lowest = 0, highest = -1;
    bool any = false, zero = false;
    for (int i = -1; i < arch->tracked_count; i++) {
        const struct qut_reg_rule *reg = i < 0 ? &rule->ra : &rule->tracked[i];
        int words;
        if (reg->how != QUT_REG_AT_CFA)
            continue;
        if (!in_words(reg->offset_bytes, arch->word_bytes, INT16_MIN, INT16_MAX, &words))
            return false;
        zero |= words == 0;
        lowest = !any || words < lowest ? words : lowest;
        highest = !any || words > highest ? words : highest;
        any = true;
    }
    int anchor = 0; // words from the cfa
    if (any && (lowest < SLOT_MIN || highest > SLOT_MAX || zero)) {
        anchor = lowest - 1;
        if (!anchor_free || highest - anchor > SLOT_MAX || -anchor > INT16_MAX || -anchor < INT16_MIN)
            return false;
    }
    cell->anchor_words = (int16_t)-anchor;
    for (int i = -1; i < arch->tracked_count; i++) {
        const struct qut_reg_rule *reg = i < 0 ? &rule->ra : &rule->tracked[i];
        int8_t *slot = &cell->slot[1 + i];
        switch (reg->how) {
        case QUT_REG_SAME: *slot = QUT_SLOT_SAME; break;
        case QUT_REG_UNDEFINED: *slot = (int8_t)QUT_SLOT_UNDEFINED; break;
        case QUT_REG_AT_CFA: *slot = (int8_t)(reg->offset_bytes / arch->word_bytes - anchor); break;
        default: return false;
        }
    }
    return true;
}

// ra in a register, a dex pc, or where the rule is from: there is room for one of them.
static bool place_aux(struct qut_rule *rule, struct qut_rule_cell *cell)
{
    bool has_ra_reg = rule->ra.how == QUT_REG_IN_REG;
    bool has_dex = rule->dex_pc_reg != QUT_NO_REGISTER;
    if (has_ra_reg + has_dex + (rule->origin != QUT_RULE_STATED) > 1 || (has_ra_reg && rule->ra.offset_bytes != 0))
        return false;
    unsigned kind = QUT_CELL_AUX_NONE;
    if (has_ra_reg) {
        kind = QUT_CELL_AUX_RA_REG;
        cell->aux = rule->ra.reg;
        rule->ra = (struct qut_reg_rule){.how = QUT_REG_SAME};
    } else if (has_dex) {
        kind = QUT_CELL_AUX_DEX_REG;
        cell->aux = rule->dex_pc_reg;
    } else {
        cell->aux = rule->origin;
    }
    cell->flags = (uint8_t)(rule->flags | kind << QUT_CELL_AUX_SHIFT);
    return true;
}

static bool make_short(const struct arch *arch, struct qut_rule rule, struct qut_rule_cell *cell)
{
    int words, deref_words = 0;
    if (rule.sp.how != QUT_REG_SAME || !place_aux(&rule, cell))
        return false;
    cell->reg = rule.cfa.reg;
    switch (rule.cfa.how) {
    case QUT_CFA_REG: // cfa = reg + word * cfa_words
        cell->form = QUT_CELL_FRAME;
        if (!in_words(rule.cfa.offset_bytes, arch->word_bytes, INT16_MIN, INT16_MAX, &words))
            return false;
        break;
    case QUT_CFA_DEREF: // cfa = *(reg + word * anchor_words) + word * cfa_words
        cell->form = QUT_CELL_DEREF;
        if (!in_words(rule.cfa.add_bytes, arch->word_bytes, INT16_MIN, INT16_MAX, &words) ||
            !in_words(rule.cfa.offset_bytes, arch->word_bytes, INT16_MIN, INT16_MAX, &deref_words))
            return false;
        break;
    default: return false;
    }
    cell->cfa_words = (int16_t)words;
    if (!place_slots(arch, &rule, cell->form == QUT_CELL_FRAME, cell))
        return false;
    if (cell->form == QUT_CELL_DEREF)
        cell->anchor_words = (int16_t)deref_words;
    return true;
}

unsigned table_cell_make(const struct arch *arch, const struct qut_rule *rule,
                         union qut_table_cell cells[QUT_LONG_CELLS])
{
    memset(cells, 0, QUT_LONG_CELLS * sizeof *cells);
    struct qut_rule_cell *cell = &cells[0].rule;
    if (rule->kind == QUT_RULE_HOLE) {
        cell->form = QUT_CELL_HOLE;
        return 1;
    }
    if (rule->kind == QUT_RULE_REFUSED) {
        cell->form = QUT_CELL_REFUSED;
        cell->aux = rule->reason;
        int words;
        if (rule->reason == QUT_REFUSED_STACK_SWITCH && rule->stack_switch &&
            in_words(rule->cfa.offset_bytes, arch->word_bytes, INT16_MIN, INT16_MAX, &words)) {
            cell->slot[0] = (int8_t)rule->stack_switch;
            cell->reg = rule->cfa.reg;
            cell->cfa_words = (int16_t)words;
        }
        return 1;
    }
    if (make_short(arch, *rule, cell))
        return 1;
    memset(cells, 0, sizeof *cells);
    cell->form = QUT_CELL_LONG;
    static_assert(sizeof *rule == (QUT_LONG_CELLS - 1) * sizeof *cells, "a rule fills the cells after its head");
    memcpy(&cells[1], rule, sizeof *rule);
    return QUT_LONG_CELLS;
}
