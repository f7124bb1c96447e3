// SPDX-License-Identifier: Apache-2.0
// The state of a frame program and what one instruction does to it. A state is a struct qut_rule with two marks that a
// table does not know: a CFA or a register whose present rule cannot be expressed.
#ifndef QUTC_CFI_STATE_H
#define QUTC_CFI_STATE_H

#include "qutc/cfi/frame_section.h"

enum {
    CFI_CFA_REFUSED = QUT_CFA_HOW_END, // offset_bytes = enum qut_refusal
    CFI_REG_REFUSED = QUT_REG_HOW_END, // offset_bytes = enum qut_refusal
};

// What kind of instruction an opcode is.
enum cfi_op_shape {
    CFI_OP_OTHER = 0, // remembers or restores a state, does nothing, or is unknown
    CFI_OP_ADVANCE,   // moves the location
    CFI_OP_CFA,       // defines the CFA
    // The rest concern registers; what follows the opcode:
    CFI_OP_BARE,
    CFI_OP_LEB,
    CFI_OP_LEB2,
    CFI_OP_LEB_BLOCK,
};

enum cfi_op_shape cfi_op_shape(uint8_t op);
// Moves past the operands of an instruction that concerns registers.
void cfi_skip_operands(struct base_cursor *c, enum cfi_op_shape shape);

// Before the CIE's own instructions: no CFA, every register unchanged.
struct qut_rule cfi_state_start(const struct arch *arch, const struct cfi_cie *cie);

// Applies every instruction up to the cursor's end. The caller keeps instructions that move the location and
// remember/restore_state out of the stream. `initial` is the CIE's state, for DW_CFA_restore; NULL inside the CIE.
// False where an instruction is malformed or unknown.
bool cfi_state_apply(struct qut_rule *state, const struct qut_rule *initial, const struct arch *arch,
                     const struct cfi_cie *cie, struct base_cursor *c);

// Applies one instruction that defines the CFA, its opcode read already. False where it is malformed.
bool cfi_state_apply_cfa(struct qut_cfa *cfa, const struct arch *arch, const struct cfi_cie *cie, uint8_t op,
                         struct base_cursor *c);

// The rule that a table can state: a frame, or a refusal with the first reason there is.
struct qut_rule cfi_state_rule(const struct qut_rule *state, const struct arch *arch);

#endif
