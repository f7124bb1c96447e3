// SPDX-License-Identifier: Apache-2.0
#include "tests/proof/oracle/judge.h"

#include <stdlib.h>

const char *const verdict_names[VERDICT_COUNT] = {
    [VERDICT_EXACT] = "exact",
    [VERDICT_TRAMPOLINE] = "trampoline",
    [VERDICT_BODY_RIGHT] = "body_right",
    [VERDICT_BODY_DOUBTFUL] = "body_doubtful",
    [VERDICT_DOUBTFUL] = "doubtful",
    [VERDICT_REFUSED] = "refused",
    [VERDICT_HOLE] = "hole",
    [VERDICT_NO_TABLE] = "no_table",
    [VERDICT_NO_MODULE] = "no_module",
    [VERDICT_NO_REGISTER] = "no_register",
    [VERDICT_BAD_MEMORY] = "bad_memory",
    [VERDICT_WRONG_CFA] = "wrong_cfa",
    [VERDICT_WRONG_RA] = "wrong_ra",
    [VERDICT_WRONG_REGISTER] = "wrong_register",
    [VERDICT_WRONG_END] = "wrong_end",
    [VERDICT_WRONG_CALLER] = "wrong_caller",
};

enum { SPOILED_PER_MILLE = 20, SPOILED_BODIES_PER_MILLE = 200 }; // function-level rows are few

static uint64_t hash(uint64_t value)
{
    value = (value ^ value >> 31) * 0x9e3779b97f4a7c15u;
    value = (value ^ value >> 29) * 0xbf58476d1ce4e5b9u;
    return value ^ value >> 32;
}

static struct judged_pc **slot_of(struct judge *judge, uint64_t pc, const struct oracle_file *file)
{
    size_t at = (size_t)hash(pc) & (judge->capacity - 1);
    while (judge->slots[at] && (judge->slots[at]->pc != pc || judge->slots[at]->file != file))
        at = (at + 1) & (judge->capacity - 1);
    return &judge->slots[at];
}

static void grow(struct judge *judge)
{
    struct judged_pc **old = judge->slots;
    size_t old_capacity = judge->capacity;
    judge->capacity = old_capacity ? 2 * old_capacity : 1 << 14;
    judge->slots = calloc(judge->capacity, sizeof(struct judged_pc *));
    if (!judge->slots)
        abort();
    for (size_t i = 0; i < old_capacity; i++)
        if (old[i])
            *slot_of(judge, old[i]->pc, old[i]->file) = old[i];
    free(old);
}

// What the walk does at an interrupted pc: at a function's first instruction nothing has been saved yet, elsewhere the
// function-level rule is tried.
static void at_function_start(const struct arch *arch, const struct qut_table *table, struct judged_pc *at)
{
    struct qut_rule before;
    if (at->vaddr != at->row_start)
        return;
    runtime_table_rule(table, at->vaddr - 1, &before);
    if (before.kind == QUT_RULE_FRAME && !(before.flags & QUT_RULE_BODY_ONLY))
        return;
    uint8_t flags = at->rule.flags;
    at->rule = (struct qut_rule){.kind = QUT_RULE_FRAME, .flags = flags, .dex_pc_reg = QUT_NO_REGISTER};
    at->rule.cfa.reg = arch->sp_reg;
}

// A mistake whose answer cannot be right by chance.
static void spoil(const struct judge *judge, struct judged_pc *at)
{
    const struct arch *arch = judge->guest->arch;
    uint64_t dice = hash(hash(at->row_start) + judge->spoil_seed + (uintptr_t)at->file->entry_vaddr);
    if (at->rule.ra.how == QUT_REG_UNDEFINED ||
        dice % 1000 >= (at->body_only ? SPOILED_BODIES_PER_MILLE : SPOILED_PER_MILLE))
        return;
    at->spoiled = true;
    switch (dice >> 40 & (at->body_only ? 1 : 3)) {
    case 0: at->rule.ra = (struct qut_reg_rule){.how = QUT_REG_CFA_VALUE, .offset_bytes = -3}; return;
    case 1:
        at->rule.tracked[(dice >> 50) % arch->tracked_count] =
            (struct qut_reg_rule){.how = QUT_REG_CFA_VALUE, .offset_bytes = 0x7003};
        return;
    case 2: at->rule.cfa.offset_bytes -= arch->word_bytes; return;
    default: at->rule.cfa.offset_bytes += arch->word_bytes; return;
    }
}

static void look_up(struct judge *judge, struct judged_pc *at, const struct oracle_module *module)
{
    at->body_only = false;
    at->spoiled = false;
    at->without_rule = VERDICT_EXACT;
    if (!module) {
        at->without_rule = VERDICT_NO_MODULE;
        return;
    }
    at->vaddr = at->pc - module->load_bias;
    if (!module->file->has_table) {
        at->without_rule = VERDICT_NO_TABLE;
        return;
    }
    const struct qut_table *table = &module->file->table;
    runtime_table_rule(table, at->vaddr, &at->rule);
    if (at->rule.kind != QUT_RULE_FRAME) {
        at->without_rule = at->rule.kind == QUT_RULE_REFUSED ? VERDICT_REFUSED : VERDICT_HOLE;
        return;
    }
    at->row_start = runtime_table_row_start(table, at->vaddr);
    at->body_only = at->rule.flags & QUT_RULE_BODY_ONLY;
    if (at->body_only)
        at_function_start(judge->guest->arch, table, at);
    if (judge->spoil_seed)
        spoil(judge, at);
}

struct judged_pc *judge_prepare(struct judge *judge, uint64_t pc, bool thumb, const uint8_t *bytes, size_t size)
{
    const struct oracle_module *module = modules_find(judge->modules, pc);
    const struct oracle_file *file = module ? module->file : NULL;
    if (2 * judge->count >= judge->capacity)
        grow(judge);
    struct judged_pc **slot = slot_of(judge, pc, file), *at = *slot;
    if (!at) {
        at = *slot = calloc(1, sizeof *at);
        if (!at)
            abort();
        at->pc = pc;
        at->file = file;
        judge->count++;
    }
    at->next_pc = pc + size;
    at->kind = instruction_kind(judge->guest->arch, thumb, bytes, size);
    look_up(judge, at, module);
    return at;
}

// The caller's registers against the truth. The tracked ones that the rule gives up are not wrong.
static enum verdict compare(const struct judge *judge, struct judged_pc *at, const struct arch_frame_regs *caller,
                            uint64_t cfa, const struct shadow_frame *truth)
{
    const struct arch *arch = judge->guest->arch;
    uint64_t ra = guest_strip(judge->guest, caller->pc);
    if (arch->has_thumb)
        ra &= ~(uint64_t)1;
    at->wanted = truth->cfa;
    at->given = cfa;
    if (cfa != truth->cfa)
        return VERDICT_WRONG_CFA;
    at->given = caller->reg[arch->sp_reg];
    if ((caller->valid >> arch->sp_reg & 1) && at->given != truth->cfa)
        return VERDICT_WRONG_CFA;
    at->wanted = truth->ra;
    at->given = ra;
    if (ra != truth->ra)
        return VERDICT_WRONG_RA;
    for (unsigned slot = 0; slot < arch->tracked_count && !truth->is_thunk; slot++) {
        at->wanted = truth->tracked[slot];
        at->given = caller->reg[arch->tracked[slot]];
        at->wrong_slot = slot;
        if ((caller->valid >> arch->tracked[slot] & 1) && at->given != at->wanted)
            return VERDICT_WRONG_REGISTER;
    }
    return VERDICT_EXACT;
}

static enum verdict judge_rule(const struct judge *judge, struct judged_pc *at, const struct arch_frame_regs *regs,
                               const struct shadow_frame *truth)
{
    struct arch_frame_regs caller = {0};
    uint64_t cfa = 0;
    switch (runtime_rule_eval(judge->guest->arch, &at->rule, regs, guest_read_word, judge->guest, &caller, &cfa)) {
    case RUNTIME_EVAL_OK:
        if (truth)
            return compare(judge, at, &caller, cfa, truth);
        at->wanted = 0;
        at->given = guest_strip(judge->guest, caller.pc);
        return at->given == 0 ? VERDICT_EXACT : VERDICT_WRONG_CALLER; // nothing returns to 0
    case RUNTIME_EVAL_END: return truth ? VERDICT_WRONG_END : VERDICT_EXACT;
    case RUNTIME_EVAL_NO_RULE: return VERDICT_REFUSED;
    case RUNTIME_EVAL_NO_REGISTER: return VERDICT_NO_REGISTER;
    default: return VERDICT_BAD_MEMORY;
    }
}

void judge_instruction(struct judge *judge, struct judged_pc *at, const struct arch_frame_regs *regs,
                       const struct shadow_frame *truth)
{
    if (truth && truth->kind == SHADOW_SIGNAL) {
        at->counts[VERDICT_TRAMPOLINE]++;
        return;
    }
    if (at->without_rule != VERDICT_EXACT) {
        at->counts[at->without_rule]++;
        return;
    }
    bool was_wrong = verdict_is_wrong(at->wrong);
    uint64_t wanted = at->wanted, given = at->given;
    unsigned slot = at->wrong_slot;
    enum verdict verdict = judge_rule(judge, at, regs, truth);
    if (at->body_only)
        verdict = verdict == VERDICT_EXACT ? VERDICT_BODY_RIGHT : VERDICT_BODY_DOUBTFUL;
    if (verdict_is_wrong(verdict) && at->rule.origin == QUT_RULE_DOUBTFUL && !at->spoiled)
        verdict = VERDICT_DOUBTFUL;
    at->counts[verdict]++;
    at->judged |= truth != NULL;
    if (was_wrong) {
        at->wanted = wanted;
        at->given = given;
        at->wrong_slot = slot;
    } else if (verdict_is_wrong(verdict)) {
        at->wrong = verdict;
    }
}
