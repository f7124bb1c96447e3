// SPDX-License-Identifier: Apache-2.0
// Instructions whose result is computed, and no copy of anything. Not among them is what code that hides addresses is
// made of, and what another one takes back: xor, rotations, additions, not, neg, bswap; nor what may change nothing.
#include "qutc/code/x86/inside.h"

static bool is_computed_by(unsigned operation, bool has_number, bool is_same)
{
    enum { OR = 1, ADC, SBB, AND };
    return operation == ADC || operation == SBB || ((operation == OR || operation == AND) && !has_number && !is_same);
}

static bool one_byte(const struct code_x86 *x)
{
    unsigned group = x->reg & 7;
    switch (x->opcode) {
    case 0x00 ... 0x3f: {
        bool has_number = (x->opcode & 7) >= 4;
        bool is_same = x->mode == 3 && x->low == x->reg;
        return is_computed_by(x->opcode >> 3 & 7, has_number, is_same);
    }
    case 0x80 ... 0x83: return is_computed_by(group, true, false);
    case 0xf6 ... 0xf7: return group >= 4; // mul, imul, div, idiv
    case 0x69:
    case 0x6b: return true; // imul
    case 0xc0 ... 0xc1:
    case 0xd0 ... 0xd3: return group >= 4; // shl, shr, sar
    default: return false;
    }
}

static bool map_0f(const struct code_x86 *x)
{
    switch (x->opcode) {
    case 0x90 ... 0x9f: // setcc
    case 0xa4 ... 0xa5: // shld, shrd
    case 0xac ... 0xad:
    case 0xaf: // imul
    case 0xbc ... 0xbd: return true;
    case 0xb8: return x->repeat == 0xf3; // popcnt
    default: return false;
    }
}

// Of those of VEX the first operand alone is written, but of mulx.
static unsigned vex_written(const struct code_x86 *x)
{
    if (x->encoding != ENCODING_VEX || x->map != 2)
        return 0;
    switch (x->opcode) {
    case 0xf2:           // andn
    case 0xf5:           // bzhi, pdep, pext
    case 0xf7: return 1; // bextr, shlx, shrx, sarx
    case 0xf6: return 2;
    default: return 0;
    }
}

void code_x86_tell_computed(const struct code_x86 *x, struct code_instruction *in)
{
    unsigned written = CODE_OPS_MAX;
    if (x->encoding != ENCODING_LEGACY)
        written = vex_written(x);
    else if (x->map == MAP_0F38) // adcx, adox
        written = x->opcode == 0xf6 && (x->half_operand || x->repeat == 0xf3) ? written : 0;
    else if (!(x->map == MAP_ONE && one_byte(x)) && !(x->map == MAP_0F && map_0f(x)))
        written = 0;
    for (unsigned i = 0; i < in->op_count && i < written; i++)
        if (in->ops[i].kind == CODE_OP_LOSE)
            in->ops[i].kind = CODE_OP_COMPUTE;
}
