// SPDX-License-Identifier: Apache-2.0
// What a frame program knows at a location, and what is remembered of it.
//
// That are two numbers. The form is the id of an interned state: the rules of the registers, and how the CFA is made,
// without the offset where it is `register + offset`. The offset changes in almost every row, the form rarely, and
// forms are the same few again and again. A program is thus a walk through a small automaton, (form, instruction) ->
// form, whose steps are remembered; and a row is one look-up from (form, offset) to the id of a rule.
#ifndef QUTC_CFI_FORMS_H
#define QUTC_CFI_FORMS_H

#include "qutc/cfi/frame_section.h"
#include "qutc/cfi/rule_set.h"

enum {
    // Refused states, interned right after the hole: a program ends in them.
    CFI_FORM_BAD_PROGRAM = 1,
    CFI_FORM_STATE_DEPTH = 2,
    CFI_CIE_CLASSES_MAX = 32,
    CFI_CIE_CLASS_NONE = 0xff, // CIEs beyond that: their steps are not remembered
    CFI_STEP_BYTES_MAX = 3,    // of instructions whose steps are
    CFI_NEAR_NONE = 15,        // offsets of fewer words have their rules beside the form
    CFI_STEP_BITS = 12,
    CFI_FAR_RULE_BITS = 10,
};

struct cfi_point {
    uint32_t form;
    int32_t offset_bytes; // counts where the CFA is a register and this
};

// By offset, in words; 0: not known yet. The last one stands for all other offsets, and is never known.
struct cfi_near_rules {
    uint32_t ids[CFI_NEAR_NONE + 1];
};

struct cfi_step {
    uint64_t key; // form, class of the CIE, instruction bytes; 0: empty
    uint32_t to;
};

struct cfi_far_rule {
    uint64_t key; // form, offset; 0: empty
    uint32_t id;
};

struct cfi_forms {
    const struct arch *arch;
    struct cfi_rule_set states;              // by form, perhaps with the marks of state.h
    BASE_VECTOR(struct cfi_near_rules) near; // by form
    struct cfi_rule_set *rules;              // as a table can say them
    struct cfi_step *steps;
    struct cfi_far_rule *far_rules;
    unsigned word_log2;
    uint32_t class_count;
    struct cfi_cie classes[CFI_CIE_CLASSES_MAX]; // the first CIE of each meaning
};

int cfi_forms_init(struct cfi_forms *forms, const struct arch *arch, struct cfi_rule_set *rules,
                   struct base_error *error);
void cfi_forms_free(struct cfi_forms *forms);

// Runs the CIE's own program, for the point where its FDEs begin, and finds its class.
int cfi_forms_begin(struct cfi_forms *forms, struct cfi_cie *cie, struct base_error *error);

// The form after one instruction that concerns registers, or CFI_FORM_BAD_PROGRAM; CFI_RULE_NO_MEMORY.
uint32_t cfi_form_interpret(struct cfi_forms *forms, const struct cfi_cie *cie, uint32_t form,
                            struct base_bytes instruction);
// The same of an instruction of at most CFI_STEP_BYTES_MAX bytes, which are a number here; remembered from now on.
uint32_t cfi_form_learn_step(struct cfi_forms *forms, const struct cfi_cie *cie, uint32_t form, uint32_t bytes,
                             unsigned size);
// What one instruction that defines the CFA leaves.
struct cfi_point cfi_point_with_cfa(struct cfi_forms *forms, const struct cfi_cie *cie, struct cfi_point point,
                                    struct base_cursor *c);
// The rule of a row, remembered from now on; CFI_RULE_NO_MEMORY.
uint32_t cfi_point_learn_rule(struct cfi_forms *forms, struct cfi_point point);

// Neither refused nor out of memory: the ids up to STATE_DEPTH, and the last one.
static inline bool cfi_form_is_sound(uint32_t form)
{
    return form + 1 > CFI_FORM_STATE_DEPTH + 1;
}

static inline bool cfi_form_has_offset(const struct cfi_forms *forms, uint32_t form)
{
    return forms->states.rules[form].kind == QUT_RULE_FRAME && forms->states.rules[form].cfa.how == QUT_CFA_REG;
}

static inline uint64_t cfi_step_key(const struct cfi_cie *cie, uint32_t form, uint32_t bytes)
{
    return (uint64_t)form << 32 | cie->class << 24 | bytes;
}

static inline struct cfi_step *cfi_step_place(const struct cfi_forms *forms, uint64_t key)
{
    return &forms->steps[key * 0x9e3779b97f4a7c15u >> (64 - CFI_STEP_BITS)];
}

// The key is exact: an instruction's bytes say by themselves where they end. CIEs beyond the classes have none.
static inline uint32_t cfi_form_step(struct cfi_forms *forms, const struct cfi_cie *cie, uint32_t form, uint32_t bytes,
                                     unsigned size)
{
    const uint64_t key = cfi_step_key(cie, form, bytes);
    const struct cfi_step *step = cfi_step_place(forms, key);
    return step->key == key ? step->to : cfi_form_learn_step(forms, cie, form, bytes, size);
}

// An offset in words, CFI_NEAR_NONE where it is none of the near ones.
static inline uint32_t cfi_point_near_words(const struct cfi_forms *forms, struct cfi_point point)
{
    const uint32_t offset = (uint32_t)point.offset_bytes, words = offset >> forms->word_log2;
    return words < CFI_NEAR_NONE && words << forms->word_log2 == offset ? words : CFI_NEAR_NONE;
}

static inline uint64_t cfi_point_key(struct cfi_point point)
{
    return (uint64_t)point.form << 32 | (uint32_t)point.offset_bytes;
}

static inline struct cfi_far_rule *cfi_point_far_place(const struct cfi_forms *forms, struct cfi_point point)
{
    return &forms->far_rules[cfi_point_key(point) * 0x9e3779b97f4a7c15u >> (64 - CFI_FAR_RULE_BITS)];
}

// The rule of a row whose offset is not near; 0: not known.
static inline uint32_t cfi_point_far_rule(const struct cfi_forms *forms, struct cfi_point point)
{
    const struct cfi_far_rule *far_rule = cfi_point_far_place(forms, point);
    return far_rule->key == cfi_point_key(point) ? far_rule->id : 0;
}

// The rule of a row; CFI_RULE_NO_MEMORY.
static inline uint32_t cfi_point_rule(struct cfi_forms *forms, struct cfi_point point)
{
    uint32_t id = forms->near.items[point.form].ids[cfi_point_near_words(forms, point)];
    if (!id)
        id = cfi_point_far_rule(forms, point);
    return id ? id : cfi_point_learn_rule(forms, point);
}

#endif
