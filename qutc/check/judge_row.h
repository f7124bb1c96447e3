// SPDX-License-Identifier: Apache-2.0
// One row as a library told it, and its values. The libraries decode; what their answers mean is written once, here.
#ifndef QUTC_CHECK_JUDGE_ROW_H
#define QUTC_CHECK_JUDGE_ROW_H

#include "qutc/check/cfi_walk.h"
#include "qutc/check/dwarf_eval.h"
#include "qutc/check/judge.h"

enum { CHECK_ROW_OPS_MAX = 512 };

enum check_place_kind {
    CHECK_PLACE_SAME = 0,
    CHECK_PLACE_UNDEFINED,
    CHECK_PLACE_PROGRAM, // yields the value or its address
    CHECK_PLACE_UNKNOWN, // the library could not say
};

struct check_place {
    enum check_place_kind kind;
    uint16_t first, count; // operations in the row's pool
};

struct check_judge_row {
    uint64_t start, end;
    const char *abstain; // a reason, or NULL
    bool signal_frame;
    bool ra_signed;
    uint8_t dex_pc_reg;
    uint64_t ra_column;
    struct check_place cfa, ra, sp;
    struct check_place tracked[QUT_TRACKED_MAX];
    uint16_t op_count;
    struct check_dwarf_op ops[CHECK_ROW_OPS_MAX];
};

void check_judge_row_reset(struct check_judge_row *row);

// Appends operations to the row's pool as one place. Where there is no room, the row abstains.
void check_judge_row_program(struct check_judge_row *row, struct check_place *place, const struct check_dwarf_op *ops,
                             unsigned count);

// Where `place` is `const4u "DEX1"; drop; bregx reg 0`, with a CFA below or not: notes reg as the dex pc's.
void check_judge_row_dex_pc(struct check_judge_row *row, const struct check_place *place);

// The registers whose val_expression may hold that mark: ART's scratch registers.
unsigned check_dex_mark_registers(const struct arch *arch, uint8_t registers[2]);

// The row's values for a frame.
void check_judge_row_values(const struct check_judge_row *row, const struct arch *arch,
                            const struct arch_frame_regs *frame, runtime_read_word read, void *context,
                            struct check_judgement *judgement);

// Abstains where what a section says of a pc is not meant so, and a reader takes it at its word. `fde`: the one that
// the walk finds at the pc, or NULL. Ask before the reader.
bool check_judge_doubts(const struct check_walk_index *index, const struct check_walk_fde *fde, uint64_t pc,
                        struct check_judgement *judgement);

static inline void check_judge_abstain(struct check_judgement *judgement, const char *reason)
{
    judgement->verdict = CHECK_VERDICT_ABSTAIN;
    judgement->reason = reason;
}

// Ascending, each once.
void check_sort_pcs(uint64_t *pcs, size_t *count);

// Starts and ends of the FDEs, ascending, each once.
int check_walk_boundaries(const struct check_walk_index *index, uint64_t **pcs, size_t *count,
                          struct base_error *error);

#endif
