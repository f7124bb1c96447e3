// SPDX-License-Identifier: Apache-2.0
// Runs frame programs: CFA instructions -> rows of rule ids.
#ifndef QUTC_CFI_FRAME_PROGRAM_H
#define QUTC_CFI_FRAME_PROGRAM_H

#include "qutc/cfi/forms.h"
#include "qutc/cfi/row_list.h"

enum { CFI_REMEMBER_DEPTH_MAX = 1024 };

struct cfi_program_runner {
    struct cfi_forms forms;
    uint64_t row_count; // rows as stated
};

int cfi_program_runner_init(struct cfi_program_runner *runner, const struct arch *arch, struct cfi_rule_set *rules,
                            struct base_error *error);
void cfi_program_runner_free(struct cfi_program_runner *runner);

// Appends the FDE's rows, the last of them a hole at its end. -1: no memory.
int cfi_program_run(struct cfi_program_runner *runner, struct cfi_cie *cie, const struct cfi_fde *fde,
                    uint64_t text_start, struct cfi_row_list *rows, struct base_error *error);

// ---- frame_rows.c

struct cfi_frame_counts {
    uint64_t fdes, cies, rows;
    uint64_t skipped, outside_text, overlaps;
    struct base_error first_skipped;
};

// Appends the rows of one section to `rows` (empty on entry): ascending, holes included, the last row a hole.
//
// Where FDEs overlap, the one that begins last wins, as in a search for the greatest start; where it ends, the outer
// one holds again. Of two that begin at the same pc, the first in the section wins.
int cfi_frame_rows_read(const struct input_image *image, const struct input_frame_section *section, uint64_t text_start,
                        uint64_t text_end, struct cfi_rule_set *rules, struct cfi_row_list *rows,
                        struct cfi_frame_counts *counts, struct base_error *error);

#endif
