// SPDX-License-Identifier: Apache-2.0
#include "qutc/cfi/state.h"

#include "qutc/cfi/dwarf_constants.h"
#include "qutc/cfi/expression.h"
#include "qutc/cfi/rule_set.h"

struct qut_rule cfi_state_start(const struct arch *arch, const struct cfi_cie *cie)
{
    struct qut_rule state = {.kind = QUT_RULE_FRAME, .dex_pc_reg = QUT_NO_REGISTER};
    state.cfa = (struct qut_cfa){.how = CFI_CFA_REFUSED, .offset_bytes = QUT_REFUSED_CFA_UNDEFINED};
    if (cie->signal_frame)
        state.flags |= QUT_RULE_SIGNAL;
    if (cie->key_b)
        state.flags |= QUT_RULE_RA_KEY_B;
    // libgcc's riscv64 save/restore helpers return through t0 and say so by the column.
    if (cie->ra_column != arch->ra_reg) {
        if (cie->ra_column < arch->register_count)
            state.ra = (struct qut_reg_rule){.how = QUT_REG_IN_REG, .reg = (uint8_t)cie->ra_column};
        else
            state.ra = (struct qut_reg_rule){.how = CFI_REG_REFUSED, .offset_bytes = QUT_REFUSED_REGISTER_RANGE};
    }
    return state;
}

// A number times a factor as a 32-bit offset; false where it does not fit.
static bool factored(int64_t number, int64_t factor, int32_t *offset_bytes)
{
    int64_t product;
    if (__builtin_mul_overflow(number, factor, &product) || product < INT32_MIN || product > INT32_MAX)
        return false;
    *offset_bytes = (int32_t)product;
    return true;
}

static bool refuse_cfa(struct qut_cfa *cfa, enum qut_refusal reason)
{
    *cfa = (struct qut_cfa){.how = CFI_CFA_REFUSED, .offset_bytes = (int32_t)reason};
    return true;
}

// cfa = reg + offset * factor
static bool define_cfa(struct qut_cfa *cfa, const struct arch *arch, uint64_t reg, int64_t offset, int64_t factor)
{
    int32_t offset_bytes;
    if (reg >= arch->register_count)
        return refuse_cfa(cfa, QUT_REFUSED_REGISTER_RANGE);
    if (!factored(offset, factor, &offset_bytes))
        return refuse_cfa(cfa, QUT_REFUSED_OFFSET_RANGE);
    *cfa = (struct qut_cfa){.how = QUT_CFA_REG, .reg = (uint8_t)reg, .offset_bytes = offset_bytes};
    return true;
}

bool cfi_state_apply_cfa(struct qut_cfa *cfa, const struct arch *arch, const struct cfi_cie *cie, uint8_t op,
                         struct base_cursor *c)
{
    uint64_t reg;
    int64_t offset;
    switch (op) {
    case CFA_DEF_CFA: reg = base_read_uleb(c); return define_cfa(cfa, arch, reg, (int64_t)base_read_uleb(c), 1);
    case CFA_DEF_CFA_SF: reg = base_read_uleb(c); return define_cfa(cfa, arch, reg, base_read_sleb(c), cie->data_align);
    case CFA_DEF_CFA_EXPRESSION: {
        enum qut_refusal refusal = cfi_expression_cfa(arch, base_read_bytes(c, base_read_uleb(c)), cfa);
        return refusal == QUT_REFUSED_NOT || refuse_cfa(cfa, refusal);
    }
    default: break;
    }
    // Debian's riscv64 gas begins its CIEs with a bare def_cfa_register sp: an undefined CFA has the offset 0.
    if (cfa->how == CFI_CFA_REFUSED && cfa->offset_bytes == QUT_REFUSED_CFA_UNDEFINED && op == CFA_DEF_CFA_REGISTER)
        return define_cfa(cfa, arch, base_read_uleb(c), 0, 1);
    // These change a part of `reg + offset`; where the CFA is an expression they make no sense.
    bool is_register = cfa->how == QUT_CFA_REG;
    switch (op) {
    case CFA_DEF_CFA_REGISTER:
        reg = base_read_uleb(c);
        return is_register ? define_cfa(cfa, arch, reg, cfa->offset_bytes, 1) : cfa->how == CFI_CFA_REFUSED;
    case CFA_DEF_CFA_OFFSET:
        offset = (int64_t)base_read_uleb(c);
        return is_register ? define_cfa(cfa, arch, cfa->reg, offset, 1) : cfa->how == CFI_CFA_REFUSED;
    case CFA_DEF_CFA_OFFSET_SF:
        offset = base_read_sleb(c);
        return is_register ? define_cfa(cfa, arch, cfa->reg, offset, cie->data_align) : cfa->how == CFI_CFA_REFUSED;
    default: return false;
    }
}

// The rule of a register that is needed later, or NULL.
static struct qut_reg_rule *tracked_rule(struct qut_rule *state, const struct arch *arch, const struct cfi_cie *cie,
                                         uint64_t reg)
{
    if (reg == cie->ra_column)
        return &state->ra;
    if (reg == arch->sp_reg)
        return &state->sp;
    int slot = arch_slot(arch, reg);
    return slot < 0 ? NULL : &state->tracked[slot];
}

// Sets a register's rule. A dex pc is announced by a val_expression on a scratch register (zero[0] keeps which, + 1)
// and is over when that register gets another rule.
static void set_rule(struct qut_rule *state, const struct arch *arch, const struct cfi_cie *cie, uint64_t reg,
                     struct qut_reg_rule rule)
{
    struct qut_reg_rule *mine = tracked_rule(state, arch, cie, reg);
    if (mine)
        *mine = rule;
    if (state->zero[0] && reg + 1 == state->zero[0]) {
        state->zero[0] = 0;
        state->dex_pc_reg = QUT_NO_REGISTER;
    }
}

static void set_offset_rule(struct qut_rule *state, const struct arch *arch, const struct cfi_cie *cie, uint64_t reg,
                            enum qut_reg_how how, int64_t offset)
{
    struct qut_reg_rule rule = {.how = (uint8_t)how};
    int64_t offset_bytes;
    bool is_shadow = how == QUT_REG_AT_CFA && !__builtin_mul_overflow(offset, cie->data_align, &offset_bytes) &&
                     cfi_expression_shadow(arch, offset_bytes, &rule);
    if (!is_shadow && !factored(offset, cie->data_align, &rule.offset_bytes))
        rule = (struct qut_reg_rule){.how = CFI_REG_REFUSED, .offset_bytes = QUT_REFUSED_OFFSET_RANGE};
    set_rule(state, arch, cie, reg, rule);
}

static void set_unchanged(struct qut_rule *state, const struct arch *arch, const struct cfi_cie *cie, uint64_t reg)
{
    struct qut_reg_rule rule = {.how = QUT_REG_SAME};
    // SAME means "in the usual register" for ra and "equal to the cfa" for sp; anything else is said explicitly.
    bool unusual_ra = reg == cie->ra_column && reg != arch->ra_reg && reg < arch->register_count;
    if (unusual_ra || reg == arch->sp_reg)
        rule = (struct qut_reg_rule){.how = QUT_REG_IN_REG, .reg = (uint8_t)reg};
    set_rule(state, arch, cie, reg, rule);
}

static void set_copied(struct qut_rule *state, const struct arch *arch, const struct cfi_cie *cie, uint64_t reg,
                       uint64_t from)
{
    struct qut_reg_rule rule = {.how = QUT_REG_IN_REG, .reg = (uint8_t)from};
    if (from >= arch->register_count)
        rule = (struct qut_reg_rule){.how = CFI_REG_REFUSED, .offset_bytes = QUT_REFUSED_REGISTER_RANGE};
    set_rule(state, arch, cie, reg, rule);
}

static void restore_initial(struct qut_rule *state, const struct qut_rule *initial, const struct arch *arch,
                            const struct cfi_cie *cie, uint64_t reg)
{
    struct qut_rule first = *initial;
    const struct qut_reg_rule *rule = tracked_rule(&first, arch, cie, reg);
    set_rule(state, arch, cie, reg, rule ? *rule : (struct qut_reg_rule){.how = QUT_REG_SAME});
}

static void set_expression(struct qut_rule *state, const struct arch *arch, const struct cfi_cie *cie, uint64_t reg,
                           struct base_bytes ops, bool is_value)
{
    uint8_t dex_pc_reg = is_value ? cfi_expression_dex_pc(arch, ops) : QUT_NO_REGISTER;
    if (dex_pc_reg != QUT_NO_REGISTER && reg < arch->register_count) {
        set_rule(state, arch, cie, reg, (struct qut_reg_rule){.how = QUT_REG_UNDEFINED});
        state->dex_pc_reg = dex_pc_reg;
        state->zero[0] = (uint8_t)(reg + 1);
        return;
    }
    struct qut_reg_rule rule = {0};
    enum qut_refusal refusal = cfi_expression_register(arch, ops, is_value, &rule);
    if (refusal != QUT_REFUSED_NOT)
        rule = (struct qut_reg_rule){.how = CFI_REG_REFUSED, .offset_bytes = (int32_t)refusal};
    set_rule(state, arch, cie, reg, rule);
}

static bool apply_extended(struct qut_rule *state, const struct qut_rule *initial, const struct arch *arch,
                           const struct cfi_cie *cie, struct base_cursor *c, uint8_t op)
{
    uint64_t reg;
    switch (op) {
    case CFA_NOP: return true;
    case CFA_DEF_CFA:
    case CFA_DEF_CFA_SF:
    case CFA_DEF_CFA_REGISTER:
    case CFA_DEF_CFA_OFFSET:
    case CFA_DEF_CFA_OFFSET_SF:
    case CFA_DEF_CFA_EXPRESSION: return cfi_state_apply_cfa(&state->cfa, arch, cie, op, c);
    case CFA_EXPRESSION:
    case CFA_VAL_EXPRESSION:
        reg = base_read_uleb(c);
        set_expression(state, arch, cie, reg, base_read_bytes(c, base_read_uleb(c)), op == CFA_VAL_EXPRESSION);
        return true;
    case CFA_OFFSET_EXTENDED:
        reg = base_read_uleb(c);
        set_offset_rule(state, arch, cie, reg, QUT_REG_AT_CFA, (int64_t)base_read_uleb(c));
        return true;
    case CFA_OFFSET_EXTENDED_SF:
        reg = base_read_uleb(c);
        set_offset_rule(state, arch, cie, reg, QUT_REG_AT_CFA, base_read_sleb(c));
        return true;
    case CFA_GNU_NEGATIVE_OFFSET_EXTENDED:
        reg = base_read_uleb(c);
        set_offset_rule(state, arch, cie, reg, QUT_REG_AT_CFA, (int64_t)(0 - base_read_uleb(c)));
        return true;
    case CFA_VAL_OFFSET:
        reg = base_read_uleb(c);
        set_offset_rule(state, arch, cie, reg, QUT_REG_CFA_VALUE, (int64_t)base_read_uleb(c));
        return true;
    case CFA_VAL_OFFSET_SF:
        reg = base_read_uleb(c);
        set_offset_rule(state, arch, cie, reg, QUT_REG_CFA_VALUE, base_read_sleb(c));
        return true;
    case CFA_RESTORE_EXTENDED:
        if (!initial)
            return false;
        restore_initial(state, initial, arch, cie, base_read_uleb(c));
        return true;
    case CFA_UNDEFINED:
        set_rule(state, arch, cie, base_read_uleb(c), (struct qut_reg_rule){.how = QUT_REG_UNDEFINED});
        return true;
    case CFA_SAME_VALUE: set_unchanged(state, arch, cie, base_read_uleb(c)); return true;
    case CFA_REGISTER:
        reg = base_read_uleb(c);
        set_copied(state, arch, cie, reg, base_read_uleb(c));
        return true;
    case CFA_GNU_ARGS_SIZE: base_read_uleb(c); return true;
    case CFA_AARCH64_NEGATE_RA_STATE:
    case CFA_AARCH64_NEGATE_RA_STATE_WITH_PC: state->flags ^= QUT_RULE_RA_SIGNED; return arch->has_signed_ra;
    default: return false;
    }
}

bool cfi_state_apply(struct qut_rule *state, const struct qut_rule *initial, const struct arch *arch,
                     const struct cfi_cie *cie, struct base_cursor *c)
{
    while (base_cursor_left(c)) {
        uint8_t op = base_read_u8(c);
        bool understood = true;
        switch (op & 0xc0) {
        case CFA_OFFSET:
            set_offset_rule(state, arch, cie, op & 0x3f, QUT_REG_AT_CFA, (int64_t)base_read_uleb(c));
            break;
        case CFA_RESTORE:
            understood = initial != NULL;
            if (initial)
                restore_initial(state, initial, arch, cie, op & 0x3f);
            break;
        default: understood = apply_extended(state, initial, arch, cie, c, op); break;
        }
        if (!understood || !base_cursor_is_sound(c))
            return false;
    }
    return true;
}

struct qut_rule cfi_state_rule(const struct qut_rule *state, const struct arch *arch)
{
    if (state->kind != QUT_RULE_FRAME)
        return *state;
    struct qut_rule rule = *state;
    memset(rule.zero, 0, sizeof rule.zero);
    if (rule.cfa.how == CFI_CFA_REFUSED)
        return cfi_rule_refused((enum qut_refusal)rule.cfa.offset_bytes);
    if (rule.ra.how == CFI_REG_REFUSED)
        return cfi_rule_refused((enum qut_refusal)rule.ra.offset_bytes);
    if (rule.ra.how == QUT_REG_SAME && !arch->ra_in_register)
        return cfi_rule_refused(QUT_REFUSED_RA_LOST);
    if (rule.sp.how == CFI_REG_REFUSED)
        return cfi_rule_refused((enum qut_refusal)rule.sp.offset_bytes);
    for (int slot = 0; slot < arch->tracked_count; slot++)
        if (rule.tracked[slot].how == CFI_REG_REFUSED)
            return cfi_rule_refused((enum qut_refusal)rule.tracked[slot].offset_bytes);
    // The key matters only to a signed address.
    if (!(rule.flags & QUT_RULE_RA_SIGNED))
        rule.flags &= (uint8_t)~QUT_RULE_RA_KEY_B;
    return rule;
}

enum cfi_op_shape cfi_op_shape(uint8_t op)
{
    static const uint8_t shapes[256] = {
        [CFA_ADVANCE_LOC... CFA_ADVANCE_LOC + 0x3f] = CFI_OP_ADVANCE,
        [CFA_OFFSET... CFA_OFFSET + 0x3f] = CFI_OP_LEB,
        [CFA_RESTORE... CFA_RESTORE + 0x3f] = CFI_OP_BARE,
        [CFA_SET_LOC] = CFI_OP_ADVANCE,
        [CFA_ADVANCE_LOC1] = CFI_OP_ADVANCE,
        [CFA_ADVANCE_LOC2] = CFI_OP_ADVANCE,
        [CFA_ADVANCE_LOC4] = CFI_OP_ADVANCE,
        [CFA_MIPS_ADVANCE_LOC8] = CFI_OP_ADVANCE,
        [CFA_OFFSET_EXTENDED] = CFI_OP_LEB2,
        [CFA_RESTORE_EXTENDED] = CFI_OP_LEB,
        [CFA_UNDEFINED] = CFI_OP_LEB,
        [CFA_SAME_VALUE] = CFI_OP_LEB,
        [CFA_REGISTER] = CFI_OP_LEB2,
        [CFA_DEF_CFA] = CFI_OP_CFA,
        [CFA_DEF_CFA_REGISTER] = CFI_OP_CFA,
        [CFA_DEF_CFA_OFFSET] = CFI_OP_CFA,
        [CFA_DEF_CFA_EXPRESSION] = CFI_OP_CFA,
        [CFA_DEF_CFA_SF] = CFI_OP_CFA,
        [CFA_DEF_CFA_OFFSET_SF] = CFI_OP_CFA,
        [CFA_EXPRESSION] = CFI_OP_LEB_BLOCK,
        [CFA_OFFSET_EXTENDED_SF] = CFI_OP_LEB2,
        [CFA_VAL_OFFSET] = CFI_OP_LEB2,
        [CFA_VAL_OFFSET_SF] = CFI_OP_LEB2,
        [CFA_VAL_EXPRESSION] = CFI_OP_LEB_BLOCK,
        [CFA_AARCH64_NEGATE_RA_STATE_WITH_PC] = CFI_OP_BARE,
        [CFA_AARCH64_NEGATE_RA_STATE] = CFI_OP_BARE,
        [CFA_GNU_ARGS_SIZE] = CFI_OP_LEB,
        [CFA_GNU_NEGATIVE_OFFSET_EXTENDED] = CFI_OP_LEB2,
    };
    return (enum cfi_op_shape)shapes[op];
}

static void skip_leb(struct base_cursor *c)
{
    while (base_read_u8(c) & 0x80)
        continue;
}

void cfi_skip_operands(struct base_cursor *c, enum cfi_op_shape shape)
{
    if (shape == CFI_OP_BARE)
        return;
    skip_leb(c);
    if (shape == CFI_OP_LEB2)
        skip_leb(c);
    else if (shape == CFI_OP_LEB_BLOCK)
        base_cursor_skip(c, base_read_uleb(c));
}
