// SPDX-License-Identifier: Apache-2.0
// What kind of instruction an opcode is, and how to step over the operands of those that set rules of registers.
#ifndef QUTC_CFI_OP_SHAPE_H
#define QUTC_CFI_OP_SHAPE_H

#include "qutc/base/cursor.h"
#include "qutc/cfi/dwarf_constants.h"

enum qutc_op_shape {
    QUTC_OP_SPECIAL = 0, // remembers or restores a state, or is unknown
    QUTC_OP_ADVANCE,     // moves the location
    QUTC_OP_CFA,         // defines the CFA
    QUTC_OP_NOP,
    // The rest concern registers; what follows the opcode:
    QUTC_OP_BARE,
    QUTC_OP_LEB,
    QUTC_OP_LEB2,
    QUTC_OP_LEB_BLOCK,
};

static inline enum qutc_op_shape qutc_op_shape(uint8_t op)
{
    static const uint8_t shapes[256] = {
        [CFA_ADVANCE_LOC... CFA_ADVANCE_LOC + 0x3f] = QUTC_OP_ADVANCE,
        [CFA_OFFSET... CFA_OFFSET + 0x3f] = QUTC_OP_LEB,
        [CFA_RESTORE... CFA_RESTORE + 0x3f] = QUTC_OP_BARE,
        [CFA_NOP] = QUTC_OP_NOP,
        [CFA_SET_LOC] = QUTC_OP_ADVANCE,
        [CFA_ADVANCE_LOC1] = QUTC_OP_ADVANCE,
        [CFA_ADVANCE_LOC2] = QUTC_OP_ADVANCE,
        [CFA_ADVANCE_LOC4] = QUTC_OP_ADVANCE,
        [CFA_MIPS_ADVANCE_LOC8] = QUTC_OP_ADVANCE,
        [CFA_OFFSET_EXTENDED] = QUTC_OP_LEB2,
        [CFA_RESTORE_EXTENDED] = QUTC_OP_LEB,
        [CFA_UNDEFINED] = QUTC_OP_LEB,
        [CFA_SAME_VALUE] = QUTC_OP_LEB,
        [CFA_REGISTER] = QUTC_OP_LEB2,
        [CFA_DEF_CFA] = QUTC_OP_CFA,
        [CFA_DEF_CFA_REGISTER] = QUTC_OP_CFA,
        [CFA_DEF_CFA_OFFSET] = QUTC_OP_CFA,
        [CFA_DEF_CFA_EXPRESSION] = QUTC_OP_CFA,
        [CFA_DEF_CFA_SF] = QUTC_OP_CFA,
        [CFA_DEF_CFA_OFFSET_SF] = QUTC_OP_CFA,
        [CFA_EXPRESSION] = QUTC_OP_LEB_BLOCK,
        [CFA_OFFSET_EXTENDED_SF] = QUTC_OP_LEB2,
        [CFA_VAL_OFFSET] = QUTC_OP_LEB2,
        [CFA_VAL_OFFSET_SF] = QUTC_OP_LEB2,
        [CFA_VAL_EXPRESSION] = QUTC_OP_LEB_BLOCK,
        [CFA_AARCH64_NEGATE_RA_STATE_WITH_PC] = QUTC_OP_BARE,
        [CFA_AARCH64_NEGATE_RA_STATE] = QUTC_OP_BARE,
        [CFA_GNU_ARGS_SIZE] = QUTC_OP_LEB,
        [CFA_GNU_NEGATIVE_OFFSET_EXTENDED] = QUTC_OP_LEB2,
    };
    return (enum qutc_op_shape)shapes[op];
}

static inline void qutc_skip_leb(struct qutc_cursor *c)
{
    while (qutc_read_u8(c) & 0x80)
        continue;
}

// Moves past the operands of an instruction that concerns registers.
static inline void qutc_skip_operands(struct qutc_cursor *c, enum qutc_op_shape shape)
{
    if (shape == QUTC_OP_BARE)
        return;
    qutc_skip_leb(c);
    if (shape == QUTC_OP_LEB2)
        qutc_skip_leb(c);
    else if (shape == QUTC_OP_LEB_BLOCK)
        qutc_cursor_skip(c, qutc_read_uleb(c));
}

#endif
