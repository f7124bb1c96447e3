// SPDX-License-Identifier: Apache-2.0
// Runs frame programs: CFA instructions -> rows of rule ids.
//
// What a frame program knows at a point has two parts. The CFA is a few numbers and changes in almost every row. The
// rules of the registers change rarely and are the same few sets again and again: they are interned, and a program is
// a walk through a small automaton, (registers id, instruction) -> registers id, whose steps are remembered. A
// row is then one look-up from (CFA, registers id) to a rule id, and a remembered state is 16 bytes.
#ifndef QUTC_CFI_PROGRAM_H
#define QUTC_CFI_PROGRAM_H

#include "qutc/cfi/frame_section.h"
#include "qutc/cfi/row_list.h"
#include "qutc/cfi/rule_set.h"

enum {
    QUTC_REMEMBER_DEPTH_MAX = 1024,
    QUTC_CIE_CLASSES_MAX = 32,
    QUTC_CIE_CLASS_NONE = 0xff, // CIEs beyond that: their steps are not remembered
};

struct qutc_register_step;
struct qutc_rule_step;

struct qutc_program_runner {
    const struct qut_arch *arch;
    struct qutc_rule_set registers; // sets of register rules: rules without a CFA, perhaps with the marks of state.h
    struct qutc_rule_set *rules;    // rules as a table can say them
    struct qutc_register_step *register_steps;
    struct qutc_rule_step *rule_steps;
    struct qutc_cie classes[QUTC_CIE_CLASSES_MAX]; // the first CIE of each meaning
    uint32_t class_count;
    uint64_t row_count; // rows as stated
};

int qutc_program_runner_init(struct qutc_program_runner *runner, const struct qut_arch *arch,
                             struct qutc_rule_set *rules, struct qutc_error *error);
void qutc_program_runner_free(struct qutc_program_runner *runner);

// Appends the FDE's rows, the last of them a hole at its end. -1: no memory.
int qutc_program_run(struct qutc_program_runner *runner, struct qutc_cie *cie, const struct qutc_fde *fde,
                     uint64_t text_start, struct qutc_row_list *rows, struct qutc_error *error);

#endif
