// SPDX-License-Identifier: Apache-2.0
#include "qutc/code/rule.h"

// The CFA in terms of what sp was at the entry: a call that pushes its return address does so below it.
static int64_t cfa_number(const struct arch *arch)
{
    return arch->ra_in_register ? 0 : arch->word_bytes;
}

static bool fits(int64_t number)
{
    return number > -(1 << 30) && number < 1 << 30;
}

// ---- the rule of a state

static bool cfa_of_register(const struct code_machine *machine, const struct code_state *state, unsigned reg,
                            struct qut_cfa *cfa)
{
    const struct arch *arch = machine->arch;
    const struct code_value *value = &state->reg[reg];
    if (value->kind != CODE_VALUE_ENTRY || value->of != arch->sp_reg || value->is_signed ||
        !fits(cfa_number(arch) - value->number))
        return false;
    *cfa = (struct qut_cfa){
        .how = QUT_CFA_REG, .reg = (uint8_t)reg, .offset_bytes = (int32_t)(cfa_number(arch) - value->number)};
    return true;
}

// What is below sp is nobody's.
static bool is_live(const struct code_machine *machine, const struct code_state *state, const struct code_slot *slot)
{
    const struct code_value *sp = &state->reg[machine->arch->sp_reg];
    // A function that has popped its own return address has another place for it, or another stack.
    if (sp->kind == CODE_VALUE_ENTRY && sp->number > 0 && !machine->arch->ra_in_register)
        return false;
    bool is_of_sp = sp->kind == CODE_VALUE_BASE    ? slot->base == sp->of
                    : sp->kind == CODE_VALUE_ENTRY ? sp->of == machine->arch->sp_reg && slot->base == CODE_BASE_ENTRY
                                                   : false;
    return !is_of_sp || slot->offset >= sp->number - machine->code->red_zone_bytes;
}

// Frames that align the stack keep the old sp in it.
static bool cfa_of_memory(const struct code_machine *machine, const struct code_state *state, struct qut_cfa *cfa)
{
    const struct arch *arch = machine->arch;
    for (unsigned i = 0; i < state->slot_count; i++) {
        const struct code_slot *slot = &state->slot[i];
        if (slot->value.kind != CODE_VALUE_ENTRY || slot->value.of != arch->sp_reg || slot->base == CODE_BASE_ENTRY ||
            !is_live(machine, state, slot))
            continue;
        const uint8_t regs[2] = {arch->tracked[0], arch->sp_reg};
        for (unsigned k = 0; k < 2; k++) {
            const struct code_value *base = &state->reg[regs[k]];
            if (base->kind != CODE_VALUE_BASE || base->of != slot->base || !fits(slot->offset - base->number) ||
                !fits(cfa_number(arch) - slot->value.number))
                continue;
            *cfa = (struct qut_cfa){.how = QUT_CFA_DEREF,
                                    .reg = regs[k],
                                    .offset_bytes = (int32_t)(slot->offset - base->number),
                                    .add_bytes = (int32_t)(cfa_number(arch) - slot->value.number)};
            return true;
        }
    }
    return false;
}

static bool find_cfa(const struct code_machine *machine, const struct code_state *state, struct qut_cfa *cfa)
{
    const struct arch *arch = machine->arch;
    // A frame pointer's rule stays the same while sp moves. What is kept by calls comes before what is not.
    if (cfa_of_register(machine, state, arch->tracked[0], cfa) || cfa_of_register(machine, state, arch->sp_reg, cfa))
        return true;
    for (unsigned i = 1; i < arch->tracked_count; i++)
        if (cfa_of_register(machine, state, arch->tracked[i], cfa))
            return true;
    if (cfa_of_memory(machine, state, cfa))
        return true;
    for (unsigned reg = 0; reg < arch->register_count; reg++)
        if (reg != arch->ra_reg && cfa_of_register(machine, state, reg, cfa))
            return true;
    return false;
}

static bool rule_of_slot(const struct code_machine *machine, const struct code_state *state,
                         const struct code_slot *slot, struct qut_reg_rule *rule)
{
    const struct arch *arch = machine->arch;
    if (!is_live(machine, state, slot))
        return false;
    if (slot->base == CODE_BASE_ENTRY) {
        *rule = (struct qut_reg_rule){.how = QUT_REG_AT_CFA, .offset_bytes = slot->offset - (int32_t)cfa_number(arch)};
        return true;
    }
    const uint8_t regs[2] = {arch->tracked[0], arch->sp_reg};
    for (unsigned i = 0; i < 2; i++) {
        const struct code_value *base = &state->reg[regs[i]];
        if (base->kind == CODE_VALUE_BASE && base->of == slot->base && fits(slot->offset - base->number)) {
            *rule = (struct qut_reg_rule){
                .how = QUT_REG_AT_REG, .reg = regs[i], .offset_bytes = (int32_t)(slot->offset - base->number)};
            return true;
        }
    }
    return false;
}

static bool is_restored_from(const struct code_machine *machine, unsigned reg, const struct code_slot *slot)
{
    const struct code_slot *restored = &machine->restored[reg];
    return restored->value.kind != CODE_VALUE_UNKNOWN && restored->base == slot->base &&
           restored->offset == slot->offset;
}

// Where a register's value at the entry is now. The place that the function loads it back from comes first: rules then
// stay the same while the register is put to other uses.
static bool find_register(const struct code_machine *machine, const struct code_state *state, unsigned reg,
                          struct qut_reg_rule *rule)
{
    const struct code_slot *any = NULL;
    *rule = (struct qut_reg_rule){.how = QUT_REG_SAME};
    for (unsigned i = 0; i < state->slot_count; i++) {
        const struct code_slot *slot = &state->slot[i];
        if (!code_value_is_entry(&slot->value, reg, 0) || !is_live(machine, state, slot))
            continue;
        if (is_restored_from(machine, reg, slot) && rule_of_slot(machine, state, slot, rule))
            return true;
        any = !any || slot->offset > any->offset ? slot : any;
    }
    // A call that comes next overwrites the return address in its register, and is the instruction that callers are
    // looked up by.
    if (any && reg == machine->arch->ra_reg && machine->arch->ra_in_register && rule_of_slot(machine, state, any, rule))
        return true;
    if (code_value_is_entry(&state->reg[reg], reg, 0))
        return true;
    if (any && rule_of_slot(machine, state, any, rule))
        return true;
    for (unsigned other = 0; other < machine->arch->register_count; other++) {
        if (code_value_is_entry(&state->reg[other], reg, 0)) {
            *rule = (struct qut_reg_rule){.how = QUT_REG_IN_REG, .reg = (uint8_t)other};
            return true;
        }
    }
    *rule = (struct qut_reg_rule){.how = QUT_REG_UNDEFINED};
    return false;
}

static bool find_ra(const struct code_machine *machine, const struct code_state *state, struct qut_rule *rule)
{
    const struct arch *arch = machine->arch;
    if (find_register(machine, state, arch->ra_reg, &rule->ra))
        return true;
    // Signed, in its register or in memory.
    struct code_state plain;
    code_state_copy(&plain, state);
    bool is_signed = false, key_b = false;
    struct code_value *ra = &plain.reg[arch->ra_reg];
    for (unsigned i = 0; i < plain.slot_count; i++) {
        struct code_value *value = &plain.slot[i].value;
        if (value->kind == CODE_VALUE_ENTRY && value->of == arch->ra_reg && value->is_signed) {
            is_signed = true;
            key_b = value->key_b;
            value->is_signed = false;
        }
    }
    if (ra->kind == CODE_VALUE_ENTRY && ra->of == arch->ra_reg && ra->is_signed) {
        is_signed = true;
        key_b = ra->key_b;
        ra->is_signed = false;
    }
    if (!is_signed || !find_register(machine, &plain, arch->ra_reg, &rule->ra))
        return false;
    rule->flags |= QUT_RULE_RA_SIGNED | (key_b ? QUT_RULE_RA_KEY_B : 0);
    return true;
}

bool code_rule_of(const struct code_machine *machine, const struct code_state *state, struct qut_rule *rule)
{
    const struct arch *arch = machine->arch;
    *rule = (struct qut_rule){.kind = QUT_RULE_FRAME, .dex_pc_reg = QUT_NO_REGISTER};
    if (!find_cfa(machine, state, &rule->cfa) || !find_ra(machine, state, rule))
        return false;
    for (unsigned i = 0; i < arch->tracked_count; i++)
        find_register(machine, state, arch->tracked[i], &rule->tracked[i]);
    return true;
}

// ---- a stated rule

static struct code_value moved(struct code_value value, int64_t number)
{
    value.number += number;
    return value;
}

static struct code_value at(const struct code_machine *machine, const struct code_state *state,
                            const struct code_value *base, int64_t number)
{
    const struct code_slot *slot = code_state_slot(machine, state, base, number);
    if (slot && is_live(machine, state, slot))
        return slot->value;
    return (struct code_value){0};
}

static struct code_value stated_cfa(const struct code_machine *machine, const struct code_state *state,
                                    const struct qut_cfa *cfa)
{
    const struct code_value *reg = &state->reg[cfa->reg];
    switch (cfa->how) {
    case QUT_CFA_REG: return moved(*reg, cfa->offset_bytes);
    case QUT_CFA_DEREF: return moved(at(machine, state, reg, cfa->offset_bytes), cfa->add_bytes);
    default: return (struct code_value){0};
    }
}

static struct code_value stated_register(const struct code_machine *machine, const struct code_state *state,
                                         const struct code_value *cfa, unsigned reg, const struct qut_reg_rule *rule)
{
    switch (rule->how) {
    case QUT_REG_SAME: return state->reg[reg];
    case QUT_REG_AT_CFA: return at(machine, state, cfa, rule->offset_bytes);
    case QUT_REG_AT_REG: return at(machine, state, &state->reg[rule->reg], rule->offset_bytes);
    case QUT_REG_IN_REG: return moved(state->reg[rule->reg], rule->offset_bytes);
    case QUT_REG_CFA_VALUE: return moved(*cfa, rule->offset_bytes);
    default: return (struct code_value){0};
    }
}

// Unknown values differ from no value that was meant: they may be it.
static enum code_verdict verdict_of(const struct code_value *value, unsigned reg, int64_t number)
{
    bool is_known = value->kind == CODE_VALUE_ENTRY || value->kind == CODE_VALUE_CONST;
    if (!is_known)
        return CODE_UNJUDGED;
    return value->kind == CODE_VALUE_ENTRY && value->of == reg && value->number == number ? CODE_AGREES : CODE_DIFFERS;
}

struct code_judgement code_judge_rule(const struct code_machine *machine, const struct code_state *state,
                                      const struct qut_rule *rule)
{
    const struct arch *arch = machine->arch;
    struct code_judgement judgement = {.verdict = CODE_UNJUDGED, .reg = QUT_NO_REGISTER};
    struct code_value cfa = stated_cfa(machine, state, &rule->cfa);
    judgement.verdict = verdict_of(&cfa, arch->sp_reg, cfa_number(arch));
    // A register that was overwritten, where the CFA can be found otherwise, is no base of it.
    struct qut_cfa known;
    if (judgement.verdict == CODE_UNJUDGED && rule->cfa.how == QUT_CFA_REG && find_cfa(machine, state, &known))
        judgement.verdict = CODE_DIFFERS;
    if (judgement.verdict != CODE_AGREES || rule->ra.how == QUT_REG_UNDEFINED)
        return judgement;
    struct code_value ra = stated_register(machine, state, &cfa, arch->ra_reg, &rule->ra);
    judgement.reg = arch->ra_reg;
    judgement.verdict = verdict_of(&ra, arch->ra_reg, 0);
    struct qut_rule own;
    enum { NOT_ASKED, KNOWN, NOT_KNOWN } is_known = NOT_ASKED;
    if (judgement.verdict == CODE_UNJUDGED && code_rule_of(machine, state, &own))
        judgement.verdict = CODE_DIFFERS;
    for (unsigned i = 0; i < arch->tracked_count && judgement.verdict == CODE_AGREES; i++) {
        if (rule->tracked[i].how == QUT_REG_UNDEFINED || rule->tracked[i].how == QUT_REG_AT_ALIGNED)
            continue;
        struct code_value value = stated_register(machine, state, &cfa, arch->tracked[i], &rule->tracked[i]);
        enum code_verdict verdict = verdict_of(&value, arch->tracked[i], 0);
        if (verdict == CODE_UNJUDGED && is_known == NOT_ASKED)
            is_known = code_rule_of(machine, state, &own) ? KNOWN : NOT_KNOWN;
        if (verdict == CODE_UNJUDGED && is_known == KNOWN && own.tracked[i].how != QUT_REG_UNDEFINED)
            verdict = CODE_DIFFERS;
        if (verdict == CODE_DIFFERS)
            judgement = (struct code_judgement){.verdict = CODE_DIFFERS, .reg = arch->tracked[i]};
        else if (verdict == CODE_UNJUDGED && is_known == KNOWN && rule->tracked[i].how == QUT_REG_SAME)
            judgement.gone |= (uint64_t)1 << arch->tracked[i];
    }
    return judgement;
}

bool code_contradicts_body(const struct code_machine *machine, const struct code_state *state, struct qut_rule stated)
{
    for (;;) {
        struct code_judgement judgement = code_judge_rule(machine, state, &stated);
        if (judgement.verdict != CODE_DIFFERS)
            return false;
        struct qut_rule own;
        unsigned i = 0;
        while (i < machine->arch->tracked_count && machine->arch->tracked[i] != judgement.reg)
            i++;
        if (i == machine->arch->tracked_count || stated.tracked[i].how != QUT_REG_SAME ||
            !code_rule_of(machine, state, &own) || own.tracked[i].how != QUT_REG_UNDEFINED)
            return true;
        stated.tracked[i].how = QUT_REG_UNDEFINED; // and is not asked for again
    }
}
