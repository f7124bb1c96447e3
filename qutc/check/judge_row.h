// SPDX-License-Identifier: Apache-2.0
// One row as a library told it, and its values. The libraries decode; what their answers mean is written once, here.
#ifndef QUTC_CHECK_JUDGE_ROW_H
#define QUTC_CHECK_JUDGE_ROW_H

#include "qutc/check/cfi_walk.h"
#include "qutc/check/dwarf_eval.h"
#include "qutc/check/judge.h"

enum { QUTC_ROW_OPS_MAX = 512 };

enum qutc_place_kind {
    QUTC_PLACE_SAME = 0,
    QUTC_PLACE_UNDEFINED,
    QUTC_PLACE_PROGRAM, // yields the value or its address
    QUTC_PLACE_UNKNOWN, // the library could not say
};

struct qutc_place {
    enum qutc_place_kind kind;
    uint16_t first, count; // operations in the row's pool
};

struct qutc_judge_row {
    uint64_t start, end;
    const char *abstain; // a reason, or NULL
    bool signal_frame;
    bool ra_signed;
    uint8_t dex_pc_reg;
    uint64_t ra_column;
    struct qutc_place cfa, ra, sp;
    struct qutc_place tracked[QUT_TRACKED_MAX];
    uint16_t op_count;
    struct qutc_dwarf_op ops[QUTC_ROW_OPS_MAX];
};

void qutc_judge_row_reset(struct qutc_judge_row *row);

// Appends operations to the row's pool as one place. Where there is no room, the row abstains.
void qutc_judge_row_program(struct qutc_judge_row *row, struct qutc_place *place, const struct qutc_dwarf_op *ops,
                            unsigned count);

// Where `place` is `const4u "DEX1"; drop; bregx reg 0`, with a CFA below or not: notes reg as the dex pc's.
void qutc_judge_row_dex_pc(struct qutc_judge_row *row, const struct qutc_place *place);

// The registers whose val_expression may hold that mark: ART's scratch registers.
unsigned qutc_dex_mark_registers(const struct qut_arch *arch, uint8_t registers[2]);

// The row's values for a frame.
void qutc_judge_row_values(const struct qutc_judge_row *row, const struct qut_arch *arch,
                           const struct qut_frame_regs *frame, qut_read_word read, void *context,
                           struct qutc_judgement *judgement);

static inline void qutc_judge_abstain(struct qutc_judgement *judgement, const char *reason)
{
    judgement->verdict = QUTC_VERDICT_ABSTAIN;
    judgement->reason = reason;
}

// Ascending, each once.
void qutc_sort_pcs(uint64_t *pcs, size_t *count);

// Starts and ends of the FDEs, ascending, each once.
int qutc_walk_boundaries(const struct qutc_walk_index *index, uint64_t **pcs, size_t *count, struct qutc_error *error);

#endif
