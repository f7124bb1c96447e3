// SPDX-License-Identifier: Apache-2.0
#include "qutc/code/x86/inside.h"

// nop, and lea that changes nothing, in the forms that assemblers fill up with.
static bool is_padding(const struct code_x86 *x)
{
    if (x->map == MAP_0F)
        return x->opcode == 0x1f;
    if (x->map != MAP_ONE)
        return false;
    bool is_self = !x->is_64 && x->opcode == 0x8d && x->mode != 3 && x->base == x->reg && x->index == NO_NUMBER &&
                   x->displacement == 0;
    return is_self || (x->opcode == 0x90 && x->repeat != 0xf3 && !(x->rex & 1));
}

static void read_one(struct base_bytes code, uint64_t vaddr, bool is_64, struct code_instruction *in)
{
    struct code_x86 x;
    code_begin(in);
    if (!code_x86_take_apart(code, is_64, &x))
        return;
    bool known;
    if (x.encoding != ENCODING_LEGACY)
        known = code_x86_judge_vex(&x, in);
    else if (x.map == MAP_ONE)
        known = code_x86_judge_one_byte(&x, vaddr, in);
    else if (x.map == MAP_0F)
        known = code_x86_judge_0f(&x, vaddr, in);
    else if (x.map == MAP_0F38)
        known = code_x86_judge_0f38(&x, in);
    else
        known = code_x86_judge_0f3a(&x, in);
    code_x86_tell_computed(&x, in);
    // What is not known has a length all the same: nothing goes on behind it.
    if (!known)
        in->flow = CODE_UNKNOWN;
    in->size_bytes = x.size_bytes;
    in->is_padding |= x.encoding == ENCODING_LEGACY && is_padding(&x);
}

void code_read_x86_64(struct base_bytes code, uint64_t vaddr, unsigned mode, struct code_instruction *instruction)
{
    (void)mode;
    read_one(code, vaddr, true, instruction);
}

void code_read_x86(struct base_bytes code, uint64_t vaddr, unsigned mode, struct code_instruction *instruction)
{
    (void)mode;
    read_one(code, vaddr, false, instruction);
}
