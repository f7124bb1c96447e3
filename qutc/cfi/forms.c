// SPDX-License-Identifier: Apache-2.0
#include "qutc/cfi/forms.h"

#include <stdlib.h>
#include <string.h>

#include "qutc/cfi/dwarf_constants.h"
#include "qutc/cfi/state.h"

enum { USUAL_FORMS = 256 }; // of a large library

// The form of a state, of which an offset leaves what it takes.
static uint32_t intern(struct cfi_forms *forms, struct qut_rule *state, int32_t *offset_bytes)
{
    if (state->kind == QUT_RULE_FRAME && state->cfa.how == QUT_CFA_REG) {
        *offset_bytes = state->cfa.offset_bytes;
        state->cfa.offset_bytes = 0;
    }
    if (!base_vector_reserve(&forms->near.vector, forms->states.count + 1 - forms->near.count,
                             sizeof *forms->near.items))
        return CFI_RULE_NO_MEMORY;
    const uint32_t form = cfi_rule_set_intern(&forms->states, state);
    while (forms->near.count < forms->states.count)
        forms->near.items[forms->near.count++] = (struct cfi_near_rules){0};
    return form;
}

static bool intern_refused(struct cfi_forms *forms, enum qut_refusal reason, uint32_t expected)
{
    struct qut_rule state = cfi_rule_refused(reason);
    return intern(forms, &state, NULL) == expected;
}

int cfi_forms_init(struct cfi_forms *forms, const struct arch *arch, struct cfi_rule_set *rules,
                   struct base_error *error)
{
    *forms = (struct cfi_forms){.arch = arch, .rules = rules, .word_log2 = arch->word_bytes == 8 ? 3 : 2};
    if (cfi_rule_set_init(&forms->states, error) != 0)
        return -1;
    forms->steps = calloc((size_t)1 << CFI_STEP_BITS, sizeof *forms->steps);
    forms->far_rules = calloc((size_t)1 << CFI_FAR_RULE_BITS, sizeof *forms->far_rules);
    if (forms->steps && forms->far_rules && BASE_RESERVE(&forms->near, USUAL_FORMS) &&
        intern_refused(forms, QUT_REFUSED_BAD_PROGRAM, CFI_FORM_BAD_PROGRAM) &&
        intern_refused(forms, QUT_REFUSED_STATE_DEPTH, CFI_FORM_STATE_DEPTH))
        return 0;
    cfi_forms_free(forms);
    return base_fail(error, BASE_ERR_NO_MEMORY, "", 0, "frame programs");
}

void cfi_forms_free(struct cfi_forms *forms)
{
    cfi_rule_set_free(&forms->states);
    base_vector_free(&forms->near.vector);
    free(forms->steps);
    free(forms->far_rules);
    *forms = (struct cfi_forms){0};
}

// A linker leaves one CIE per object file or personality; those that mean the same share their steps.
static uint32_t class_of(struct cfi_forms *forms, const struct cfi_cie *cie)
{
    for (uint32_t i = 0; i < forms->class_count; i++) {
        const struct cfi_cie *other = &forms->classes[i];
        if (other->initial_form == cie->initial_form && other->data_align == cie->data_align &&
            other->ra_column == cie->ra_column)
            return i;
    }
    if (forms->class_count == CFI_CIE_CLASSES_MAX)
        return CFI_CIE_CLASS_NONE;
    forms->classes[forms->class_count] = *cie;
    return forms->class_count++;
}

int cfi_forms_begin(struct cfi_forms *forms, struct cfi_cie *cie, struct base_error *error)
{
    const struct arch *arch = forms->arch;
    struct qut_rule state = cfi_state_start(arch, cie);
    struct base_cursor c = base_cursor(cie->program);
    // A column that is sp or a tracked register as well would get one rule for two questions. No producer does that.
    bool ambiguous = cie->ra_column == arch->sp_reg || arch_slot(arch, cie->ra_column) >= 0;
    cie->initial_form = CFI_FORM_BAD_PROGRAM;
    if (!ambiguous && cfi_state_apply(&state, NULL, arch, cie, &c))
        cie->initial_form = intern(forms, &state, &cie->initial_offset_bytes);
    if (cie->initial_form == CFI_RULE_NO_MEMORY)
        return base_fail(error, BASE_ERR_NO_MEMORY, "", 0, "frame programs");
    cie->has_initial_form = true;
    cie->class = class_of(forms, cie);
    return 0;
}

uint32_t cfi_form_interpret(struct cfi_forms *forms, const struct cfi_cie *cie, uint32_t form,
                            struct base_bytes instruction)
{
    struct qut_rule state = forms->states.rules[form];
    struct base_cursor c = base_cursor(instruction);
    int32_t none;
    if (!cfi_state_apply(&state, &forms->states.rules[cie->initial_form], forms->arch, cie, &c))
        return CFI_FORM_BAD_PROGRAM;
    return intern(forms, &state, &none);
}

uint32_t cfi_form_learn_step(struct cfi_forms *forms, const struct cfi_cie *cie, uint32_t form, uint32_t bytes,
                             unsigned size)
{
    uint8_t instruction[CFI_STEP_BYTES_MAX];
    for (unsigned i = 0; i < size; i++)
        instruction[i] = (uint8_t)(bytes >> (8 * i));
    const uint32_t to = cfi_form_interpret(forms, cie, form, (struct base_bytes){instruction, size});
    const uint64_t key = cfi_step_key(cie, form, bytes);
    if (cie->class != CFI_CIE_CLASS_NONE && cfi_form_is_sound(to))
        *cfi_step_place(forms, key) = (struct cfi_step){key, to};
    return to;
}

struct cfi_point cfi_point_with_cfa(struct cfi_forms *forms, const struct cfi_cie *cie, struct cfi_point point,
                                    struct base_cursor *c)
{
    const uint8_t op = base_read_u8(c);
    struct qut_rule state = forms->states.rules[point.form];
    if (cfi_form_has_offset(forms, point.form))
        state.cfa.offset_bytes = point.offset_bytes;
    bool understood = cfi_state_apply_cfa(&state.cfa, forms->arch, cie, op, c);
    point.form = CFI_FORM_BAD_PROGRAM;
    if (understood && base_cursor_is_sound(c))
        point.form = intern(forms, &state, &point.offset_bytes);
    return point;
}

uint32_t cfi_point_learn_rule(struct cfi_forms *forms, struct cfi_point point)
{
    struct qut_rule state = forms->states.rules[point.form];
    const bool has_offset = cfi_form_has_offset(forms, point.form);
    if (has_offset)
        state.cfa.offset_bytes = point.offset_bytes;
    struct qut_rule rule = cfi_state_rule(&state, forms->arch);
    const uint32_t id = cfi_rule_set_intern(forms->rules, &rule);
    // Without an offset of its own a form has none that is near.
    const uint32_t words = has_offset ? cfi_point_near_words(forms, point) : CFI_NEAR_NONE;
    if (id == CFI_RULE_NO_MEMORY)
        return id;
    if (words != CFI_NEAR_NONE)
        forms->near.items[point.form].ids[words] = id;
    else
        *cfi_point_far_place(forms, point) = (struct cfi_far_rule){cfi_point_key(point), id};
    return id;
}
