// SPDX-License-Identifier: Apache-2.0
#include "qutc/code/arm/inside.h"

enum code_when code_arm_when(unsigned condition)
{
    static const uint8_t when_of[16] = {
        CODE_WHEN_EQUAL, CODE_WHEN_UNEQUAL, CODE_WHEN_AT_LEAST, CODE_WHEN_BELOW, 0, 0, 0, 0,
        CODE_WHEN_ABOVE, CODE_WHEN_AT_MOST};
    return (enum code_when)when_of[condition & 15];
}

void code_read_arm(struct base_bytes code, uint64_t vaddr, unsigned mode, struct code_instruction *in)
{
    struct base_cursor c = base_cursor(code);
    struct code_arm a = {.in = in, .mode = mode, .word = base_read_u16(&c)};
    bool is_half = mode && a.word >> 11 < 0x1d;
    code_begin(in);
    if (!is_half) {
        uint32_t second = base_read_u16(&c);
        a.word = mode ? a.word << 16 | second : a.word | second << 16;
    }
    if (c.failed)
        return;
    in->size_bytes = is_half ? 2 : 4;
    in->target_mode = (uint8_t)mode;
    a.pc = (uint32_t)vaddr + (mode ? 4 : 8);
    a.literal = a.pc & ~3u;
    if (!mode)
        code_arm_read_a32(&a);
    else if (is_half)
        code_arm_read_half(&a);
    else
        code_arm_read_t32(&a);
    if (in->size_bytes == 0) { // operations of what is not known are not known
        code_begin(in);
        in->conditional = false;
    }
}
