// SPDX-License-Identifier: Apache-2.0
// What kind of instruction an opcode is, and how to step over those that set rules of registers.
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

// Moves past all instructions that concern registers; stops before another one, or at the end.
static inline void qutc_skip_register_ops(struct qutc_cursor *c)
{
    while (c->at < c->end) {
        enum qutc_op_shape shape = qutc_op_shape(*c->at);
        if (shape < QUTC_OP_BARE)
            return;
        c->at++;
        if (shape == QUTC_OP_BARE)
            continue;
        while (qutc_read_u8(c) & 0x80)
            continue;
        if (shape == QUTC_OP_LEB2)
            while (qutc_read_u8(c) & 0x80)
                continue;
        else if (shape == QUTC_OP_LEB_BLOCK)
            qutc_cursor_skip(c, qutc_read_uleb(c));
    }
}

#endif
