// SPDX-License-Identifier: Apache-2.0
// Runs frame programs: CFA instructions -> rows of rule ids.
//
// The state of a frame program (the rules of all registers at a point) is interned, so a program is a walk through a
// small automaton: state id + the instruction bytes between two advances -> state id. Real files have a few thousand
// such transitions and millions of rows, so almost every row costs one look into a memo of transitions. A remembered
// state is just its id.
#ifndef QUTC_CFI_PROGRAM_H
#define QUTC_CFI_PROGRAM_H

#include "qutc/cfi/frame_section.h"
#include "qutc/cfi/row_list.h"
#include "qutc/cfi/rule_set.h"

enum { QUTC_REMEMBER_DEPTH_MAX = 1024, QUTC_CIE_CLASSES_MAX = 32 };

struct qutc_transition;

struct qutc_program_runner {
    const struct qut_arch *arch;
    const uint8_t *readable_end; // of the section that holds the programs
    struct qutc_rule_set states; // rules as the programs state them; may hold the marks below
    struct qutc_rule_set *rules; // rules as a table can say them
    uint32_t *rule_of_state;     // by state id: rule id + 1; 0: not asked yet
    uint32_t rule_of_state_count;
    struct qutc_transition *memo;
    struct qutc_cie classes[QUTC_CIE_CLASSES_MAX]; // the first CIE of each meaning
    uint32_t class_count;
    uint32_t unshared_classes; // CIEs beyond that keep their transitions to themselves
    uint64_t row_count; // rows as stated
};

// `section`: all programs to be run lie in these bytes.
int qutc_program_runner_init(struct qutc_program_runner *runner, const struct qut_arch *arch, struct qutc_bytes section,
                             struct qutc_rule_set *rules, struct qutc_error *error);
void qutc_program_runner_free(struct qutc_program_runner *runner);

// Appends the FDE's rows, the last of them a hole at its end. -1: no memory.
int qutc_program_run(struct qutc_program_runner *runner, struct qutc_cie *cie, const struct qutc_fde *fde, uint64_t text_start, struct qutc_row_list *rows,
                     struct qutc_error *error);

#endif
