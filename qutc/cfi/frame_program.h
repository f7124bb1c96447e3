// SPDX-License-Identifier: Apache-2.0
// Runs frame programs: CFA instructions -> rows of rule ids.
//
// What a frame program knows at a point has two parts. The CFA is a few numbers and changes in almost every row. The
// rules of the registers change rarely and are the same few sets again and again: they are interned, and a program is
// a walk through a small automaton, (registers id, instruction) -> registers id, whose steps are remembered. A
// row is then one look-up from (CFA, registers id) to a rule id, and a remembered state is 16 bytes.
#ifndef QUTC_CFI_FRAME_PROGRAM_H
#define QUTC_CFI_FRAME_PROGRAM_H

#include "qutc/cfi/frame_section.h"
#include "qutc/cfi/row_list.h"
#include "qutc/cfi/rule_set.h"

enum {
    CFI_REMEMBER_DEPTH_MAX = 1024,
    CFI_CIE_CLASSES_MAX = 32,
    CFI_CIE_CLASS_NONE = 0xff, // CIEs beyond that: their steps are not remembered
};

struct cfi_register_step;
struct cfi_rule_step;

struct cfi_program_runner {
    const struct arch *arch;
    struct cfi_rule_set registers; // sets of register rules: rules without a CFA, perhaps with the marks of state.h
    struct cfi_rule_set *rules;    // rules as a table can say them
    struct cfi_register_step *register_steps;
    struct cfi_rule_step *rule_steps;
    struct cfi_cie classes[CFI_CIE_CLASSES_MAX]; // the first CIE of each meaning
    uint32_t class_count;
    uint64_t row_count; // rows as stated
};

int cfi_program_runner_init(struct cfi_program_runner *runner, const struct arch *arch, struct cfi_rule_set *rules,
                            struct base_error *error);
void cfi_program_runner_free(struct cfi_program_runner *runner);

// Appends the FDE's rows, the last of them a hole at its end. -1: no memory.
int cfi_program_run(struct cfi_program_runner *runner, struct cfi_cie *cie, const struct cfi_fde *fde,
                    uint64_t text_start, struct cfi_row_list *rows, struct base_error *error);

#endif
