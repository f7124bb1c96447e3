// SPDX-License-Identifier: Apache-2.0
#include "qutc/check/compare.h"

#include <stdio.h>

// The finaliser of splitmix64: every bit of the result depends on every bit of x.
static uint64_t mix64(uint64_t x)
{
    x += 0x9e3779b97f4a7c15;
    x = (x ^ x >> 30) * 0xbf58476d1ce4e5b9;
    x = (x ^ x >> 27) * 0x94d049bb133111eb;
    return x ^ x >> 31;
}

bool check_context_read(void *context, uint64_t address, uint64_t *value)
{
    const struct check_context *c = context;
    *value = mix64(address ^ c->seed);
    return true;
}

void check_context_init(struct check_context *context, const struct arch *arch, uint64_t seed)
{
    context->seed = seed;
    for (unsigned i = 0; i < ARCH_REGISTERS_MAX; i++) {
        uint64_t value = mix64(seed * ARCH_REGISTERS_MAX + i);
        context->frame.reg[i] = arch->word_bytes == 8 ? value : value & UINT32_MAX;
    }
    context->frame.valid = ((uint64_t)1 << ARCH_REGISTERS_MAX) - 1;
    context->frame.vector_bytes = arch->vector_bytes_reg ? mix64(~seed) | 1 : 0;
    context->frame.pc = 0;
}

void check_context_set_pc(struct check_context *context, const struct arch *arch, uint64_t pc)
{
    context->frame.pc = pc;
    if (arch->pc_reg != QUT_NO_REGISTER)
        context->frame.reg[arch->pc_reg] = pc;
}

void check_rule_judgement(const struct arch *arch, const struct qut_rule *rule, struct check_context *context,
                          struct check_judgement *judgement)
{
    *judgement = (struct check_judgement){.verdict = CHECK_VERDICT_NO_ROW};
    if (rule->kind != QUT_RULE_FRAME)
        return;
    struct arch_frame_regs caller;
    switch (runtime_rule_eval(arch, rule, &context->frame, check_context_read, context, &caller, &judgement->cfa)) {
    case RUNTIME_EVAL_OK: judgement->verdict = CHECK_VERDICT_ROW; break;
    case RUNTIME_EVAL_END: judgement->verdict = CHECK_VERDICT_END; break;
    default:
        judgement->verdict = CHECK_VERDICT_ABSTAIN;
        judgement->reason = "a rule that cannot be evaluated";
        return;
    }
    judgement->signal_frame = rule->flags & QUT_RULE_SIGNAL;
    judgement->body_only_source = rule->flags & QUT_RULE_BODY_ONLY;
    judgement->ra_signed_known = judgement->dex_pc_known = true;
    judgement->ra_signed = rule->flags & QUT_RULE_RA_SIGNED;
    judgement->dex_pc_reg = rule->dex_pc_reg;
    judgement->depends_on_pc = rule->cfa.how == QUT_CFA_PLT;
    if (judgement->verdict == CHECK_VERDICT_END)
        return;
    judgement->ra = caller.pc;
    judgement->sp = caller.reg[arch->sp_reg];
    for (unsigned slot = 0; slot < arch->tracked_count; slot++) {
        unsigned reg = arch->tracked[slot];
        if (caller.valid >> reg & 1)
            judgement->tracked[slot] = caller.reg[reg];
        else
            judgement->tracked_undefined |= (uint8_t)(1u << slot);
    }
}

static const char *verdict_name(enum check_verdict verdict)
{
    switch (verdict) {
    case CHECK_VERDICT_NO_ROW: return "no row";
    case CHECK_VERDICT_ROW: return "a row";
    case CHECK_VERDICT_END: return "end of stack";
    case CHECK_VERDICT_CANTUNWIND: return "cannot unwind";
    default: return "no answer";
    }
}

bool check_judgements_equal(const struct arch *arch, const struct check_judgement *left, const char *record_left_name,
                            const struct check_judgement *right, const char *right_name, char *text, unsigned text_size)
{
#define DIFFERS(WHAT, FORMAT, LEFT, RIGHT)                                                                             \
    (snprintf(text, text_size, "%s: %s " FORMAT ", %s " FORMAT, WHAT, record_left_name, LEFT, right_name, RIGHT), false)
#define HEX "0x%llx"
    typedef unsigned long long wide;

    if (left->verdict != right->verdict)
        return DIFFERS("verdict", "%s", verdict_name(left->verdict), verdict_name(right->verdict));
    if (left->verdict != CHECK_VERDICT_ROW && left->verdict != CHECK_VERDICT_END)
        return true;
    if (left->cfa != right->cfa)
        return DIFFERS("cfa", HEX, (wide)left->cfa, (wide)right->cfa);
    if (left->signal_frame != right->signal_frame)
        return DIFFERS("signal frame", "%d", left->signal_frame, right->signal_frame);
    if (left->body_only_source != right->body_only_source)
        return DIFFERS("body only", "%d", left->body_only_source, right->body_only_source);
    if (left->dex_pc_known && right->dex_pc_known && left->dex_pc_reg != right->dex_pc_reg)
        return DIFFERS("dex pc", "r%d", left->dex_pc_reg, right->dex_pc_reg);
    if (left->verdict == CHECK_VERDICT_END)
        return true;
    if (left->ra_signed_known && right->ra_signed_known && left->ra_signed != right->ra_signed && arch->has_signed_ra)
        return DIFFERS("ra signed", "%d", left->ra_signed, right->ra_signed);
    if (left->ra != right->ra)
        return DIFFERS("ra", HEX, (wide)left->ra, (wide)right->ra);
    if (left->sp != right->sp)
        return DIFFERS("sp", HEX, (wide)left->sp, (wide)right->sp);
    unsigned unknown = left->tracked_unknown | right->tracked_unknown;
    for (unsigned slot = 0; slot < arch->tracked_count; slot++) {
        if (unknown >> slot & 1)
            continue;
        const char *name = arch->register_names[arch->tracked[slot]];
        int left_undefined = left->tracked_undefined >> slot & 1;
        int right_undefined = right->tracked_undefined >> slot & 1;
        if (left_undefined != right_undefined) {
            snprintf(text, text_size, "%s: undefined for %s only", name,
                     left_undefined ? record_left_name : right_name);
            return false;
        }
        if (!left_undefined && left->tracked[slot] != right->tracked[slot])
            return DIFFERS(name, HEX, (wide)left->tracked[slot], (wide)right->tracked[slot]);
    }
    return true;
#undef HEX
#undef DIFFERS
}
