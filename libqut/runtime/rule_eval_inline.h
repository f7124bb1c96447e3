// SPDX-License-Identifier: Apache-2.0
// The one definition of what a rule means, to be compiled once for each need: with `arch` and `read` constant it
// becomes the local walker's code, else runtime_rule_eval.
#ifndef QUT_RUNTIME_RULE_EVAL_INLINE_H
#define QUT_RUNTIME_RULE_EVAL_INLINE_H

#include "libqut/runtime/rule_eval.h"

// One application of a rule: what every equation below refers to.
// `reg` gives a register of the frame by its DWARF number, or RUNTIME_VECTOR_BYTES; false where it is not known.
struct runtime_evaluation {
    bool (*reg)(void *frame, unsigned reg, uint64_t *value);
    void *frame;
    uint64_t pc;
    runtime_read_word read;
    void *context;
    uint64_t word_mask; // addresses and values wrap at the architecture's word
    uint64_t cfa;
};

static inline __attribute__((always_inline)) bool runtime_eval_register_value(const struct runtime_evaluation *e,
                                                                              unsigned reg, uint64_t *value)
{
    if (!e->reg(e->frame, reg, value))
        return false;
    *value &= e->word_mask;
    return true;
}

static inline __attribute__((always_inline)) bool runtime_eval_read_word(const struct runtime_evaluation *e,
                                                                         uint64_t address, uint64_t *value)
{
    if (!e->read(e->context, address & e->word_mask, value))
        return false;
    *value &= e->word_mask;
    return true;
}

// Offsets are signed: a slot, and the return address on arm64, can lie on either side of the CFA.
static inline __attribute__((always_inline)) uint64_t runtime_eval_moved(const struct runtime_evaluation *e,
                                                                         uint64_t base, int32_t offset_bytes)
{
    return (base + (uint64_t)(int64_t)offset_bytes) & e->word_mask;
}

static inline __attribute__((always_inline)) enum runtime_eval_result runtime_eval_cfa(struct runtime_evaluation *e,
                                                                                       const struct qut_cfa *cfa)
{
    uint64_t base;
    if (!runtime_eval_register_value(e, cfa->reg, &base))
        return RUNTIME_EVAL_NO_REGISTER;

    switch (cfa->how) {
    case QUT_CFA_REG: // cfa = reg + offset
        e->cfa = runtime_eval_moved(e, base, cfa->offset_bytes);
        return RUNTIME_EVAL_OK;
    case QUT_CFA_INDEXED: { // cfa = *(reg + (reg2 << shift) + offset) + add
        uint64_t index;
        if (!runtime_eval_register_value(e, cfa->reg2, &index))
            return RUNTIME_EVAL_NO_REGISTER;
        base += index << (cfa->shift & 63);
    }
        __attribute__((fallthrough));
    case QUT_CFA_DEREF: { // cfa = *(reg + offset) + add
        uint64_t word;
        if (!runtime_eval_read_word(e, runtime_eval_moved(e, base, cfa->offset_bytes), &word))
            return RUNTIME_EVAL_BAD_MEMORY;
        e->cfa = runtime_eval_moved(e, word, cfa->add_bytes);
        return RUNTIME_EVAL_OK;
    }
    case QUT_CFA_PLT: { // cfa = reg + offset + (((pc & mask) >= threshold) << shift)
        uint64_t pushed = (e->pc & cfa->plt.mask) >= cfa->plt.threshold;
        e->cfa = runtime_eval_moved(e, base + (pushed << (cfa->shift & 63)), cfa->offset_bytes);
        return RUNTIME_EVAL_OK;
    }
    case QUT_CFA_VECTOR: { // cfa = reg + offset + vector_count * bytes of a vector register
        uint64_t vector_bytes;
        if (!e->reg(e->frame, RUNTIME_VECTOR_BYTES, &vector_bytes))
            return RUNTIME_EVAL_NO_REGISTER;
        base += vector_bytes * (uint64_t)(int64_t)cfa->vector_count;
        e->cfa = runtime_eval_moved(e, base, cfa->offset_bytes);
        return RUNTIME_EVAL_OK;
    }
    default: return RUNTIME_EVAL_NO_RULE;
    }
}

// `same` is the register whose value SAME stands for.
static inline __attribute__((always_inline)) enum runtime_eval_result
runtime_eval_register(const struct runtime_evaluation *e, const struct qut_reg_rule *rule, unsigned same,
                      uint64_t *value)
{
    switch (rule->how) {
    case QUT_REG_SAME: return runtime_eval_register_value(e, same, value) ? RUNTIME_EVAL_OK : RUNTIME_EVAL_NO_REGISTER;
    case QUT_REG_AT_CFA:      // *(cfa + offset)
    case QUT_REG_AT_SHADOW: { // *(cfa + offset - distance)
        uint64_t distance = rule->how == QUT_REG_AT_SHADOW ? (uint64_t)1 << (rule->reg & 63) : 0;
        return runtime_eval_read_word(e, runtime_eval_moved(e, e->cfa, rule->offset_bytes) - distance, value)
                   ? RUNTIME_EVAL_OK
                   : RUNTIME_EVAL_BAD_MEMORY;
    }
    case QUT_REG_AT_REG: // *(reg + offset)
        if (!runtime_eval_register_value(e, rule->reg, value))
            return RUNTIME_EVAL_NO_REGISTER;
        return runtime_eval_read_word(e, runtime_eval_moved(e, *value, rule->offset_bytes), value)
                   ? RUNTIME_EVAL_OK
                   : RUNTIME_EVAL_BAD_MEMORY;
    case QUT_REG_IN_REG: // reg + offset
        if (!runtime_eval_register_value(e, rule->reg, value))
            return RUNTIME_EVAL_NO_REGISTER;
        *value = runtime_eval_moved(e, *value, rule->offset_bytes);
        return RUNTIME_EVAL_OK;
    case QUT_REG_CFA_VALUE: // cfa + offset
        *value = runtime_eval_moved(e, e->cfa, rule->offset_bytes);
        return RUNTIME_EVAL_OK;
    case QUT_REG_AT_ALIGNED: { // *(((cfa + bias) & -align) + offset)
        uint64_t aligned = runtime_eval_moved(e, e->cfa, rule->bias_bytes) & ~(((uint64_t)1 << (rule->reg & 63)) - 1);
        return runtime_eval_read_word(e, runtime_eval_moved(e, aligned, rule->offset_bytes), value)
                   ? RUNTIME_EVAL_OK
                   : RUNTIME_EVAL_BAD_MEMORY;
    }
    default: // UNDEFINED, for a register; for ra it was handled before
        return RUNTIME_EVAL_NO_REGISTER;
    }
}

// *e is complete but for the cfa.
static inline __attribute__((always_inline)) enum runtime_eval_result
runtime_rule_eval_inline(const struct arch *arch, const struct qut_rule *rule, struct runtime_evaluation *e,
                         struct arch_caller *caller, uint64_t *cfa)
{
    if (rule->kind != QUT_RULE_FRAME)
        return RUNTIME_EVAL_NO_RULE;

    enum runtime_eval_result result = runtime_eval_cfa(e, &rule->cfa);
    if (rule->ra.how == QUT_REG_UNDEFINED && result != RUNTIME_EVAL_BAD_MEMORY) {
        if (cfa)
            *cfa = result == RUNTIME_EVAL_OK ? e->cfa : 0;
        return RUNTIME_EVAL_END; // whatever the cfa would be
    }
    if (result != RUNTIME_EVAL_OK)
        return result;
    if (cfa)
        *cfa = e->cfa;
    result = runtime_eval_register(e, &rule->ra, arch->ra_reg, &caller->pc);
    if (result != RUNTIME_EVAL_OK)
        return result;

    caller->valid = (uint64_t)1 << arch->sp_reg;
    caller->sp = e->cfa;
    if (rule->sp.how == QUT_REG_UNDEFINED) {
        caller->valid = 0;
    } else if (rule->sp.how != QUT_REG_SAME) {
        result = runtime_eval_register(e, &rule->sp, arch->sp_reg, &caller->sp);
        if (result != RUNTIME_EVAL_OK)
            return result;
    }

    // A tracked register that cannot be found ends the walk only where a later rule asks for it.
    for (unsigned slot = 0; slot < arch->tracked_count; slot++)
        if (runtime_eval_register(e, &rule->tracked[slot], arch->tracked[slot], &caller->tracked[slot]) ==
            RUNTIME_EVAL_OK)
            caller->valid |= (uint64_t)1 << arch->tracked[slot];
    return RUNTIME_EVAL_OK;
}

#endif
