// SPDX-License-Identifier: Apache-2.0
// What kind of instruction an opcode is, and how to step over the operands of those that set rules of registers.
#ifndef QUTC_CFI_OP_SHAPE_INLINE_H
#define QUTC_CFI_OP_SHAPE_INLINE_H

#include "base/cursor_inline.h"
#include "qutc/cfi/dwarf_constants.h"

enum cfi_op_shape {
    CFI_OP_SPECIAL = 0, // remembers or restores a state, or is unknown
    CFI_OP_ADVANCE,     // moves the location
    CFI_OP_CFA,         // defines the CFA
    CFI_OP_NOP,
    // The rest concern registers; what follows the opcode:
    CFI_OP_BARE,
    CFI_OP_LEB,
    CFI_OP_LEB2,
    CFI_OP_LEB_BLOCK,
};

static inline enum cfi_op_shape cfi_op_shape(uint8_t op)
{
    static const uint8_t shapes[256] = {
        [CFA_ADVANCE_LOC... CFA_ADVANCE_LOC + 0x3f] = CFI_OP_ADVANCE,
        [CFA_OFFSET... CFA_OFFSET + 0x3f] = CFI_OP_LEB,
        [CFA_RESTORE... CFA_RESTORE + 0x3f] = CFI_OP_BARE,
        [CFA_NOP] = CFI_OP_NOP,
        [CFA_SET_LOC] = CFI_OP_ADVANCE,
        [CFA_ADVANCE_LOC1] = CFI_OP_ADVANCE,
        [CFA_ADVANCE_LOC2] = CFI_OP_ADVANCE,
        [CFA_ADVANCE_LOC4] = CFI_OP_ADVANCE,
        [CFA_MIPS_ADVANCE_LOC8] = CFI_OP_ADVANCE,
        [CFA_OFFSET_EXTENDED] = CFI_OP_LEB2,
        [CFA_RESTORE_EXTENDED] = CFI_OP_LEB,
        [CFA_UNDEFINED] = CFI_OP_LEB,
        [CFA_SAME_VALUE] = CFI_OP_LEB,
        [CFA_REGISTER] = CFI_OP_LEB2,
        [CFA_DEF_CFA] = CFI_OP_CFA,
        [CFA_DEF_CFA_REGISTER] = CFI_OP_CFA,
        [CFA_DEF_CFA_OFFSET] = CFI_OP_CFA,
        [CFA_DEF_CFA_EXPRESSION] = CFI_OP_CFA,
        [CFA_DEF_CFA_SF] = CFI_OP_CFA,
        [CFA_DEF_CFA_OFFSET_SF] = CFI_OP_CFA,
        [CFA_EXPRESSION] = CFI_OP_LEB_BLOCK,
        [CFA_OFFSET_EXTENDED_SF] = CFI_OP_LEB2,
        [CFA_VAL_OFFSET] = CFI_OP_LEB2,
        [CFA_VAL_OFFSET_SF] = CFI_OP_LEB2,
        [CFA_VAL_EXPRESSION] = CFI_OP_LEB_BLOCK,
        [CFA_AARCH64_NEGATE_RA_STATE_WITH_PC] = CFI_OP_BARE,
        [CFA_AARCH64_NEGATE_RA_STATE] = CFI_OP_BARE,
        [CFA_GNU_ARGS_SIZE] = CFI_OP_LEB,
        [CFA_GNU_NEGATIVE_OFFSET_EXTENDED] = CFI_OP_LEB2,
    };
    return (enum cfi_op_shape)shapes[op];
}

static inline void cfi_skip_leb(struct base_cursor *c)
{
    while (base_read_u8(c) & 0x80)
        continue;
}

// Moves past the operands of an instruction that concerns registers.
static inline void cfi_skip_operands(struct base_cursor *c, enum cfi_op_shape shape)
{
    if (shape == CFI_OP_BARE)
        return;
    cfi_skip_leb(c);
    if (shape == CFI_OP_LEB2)
        cfi_skip_leb(c);
    else if (shape == CFI_OP_LEB_BLOCK)
        base_cursor_skip(c, base_read_uleb(c));
}

#endif
