// SPDX-License-Identifier: Apache-2.0
// Instructions whose result is computed, and no copy of anything. What code that hides addresses is made of, and what
// another instruction takes back (xor, rotations, sums, not, neg, bswap), is so only where its operand is. Not among
// them is what may change nothing.
#include "qutc/code/x86/inside.h"

enum result {
    RESULT_ANY,
    RESULT_COMPUTED,
    RESULT_AS_BEFORE, // computed where what the register held was
};

static enum result of_operation(unsigned operation, bool has_number, bool is_same)
{
    enum { ADD, OR, ADC, SBB, AND, SUB, XOR };
    switch (operation) {
    case ADC:
    case SBB: return RESULT_COMPUTED;
    case OR:
    case AND: return has_number || is_same ? RESULT_AS_BEFORE : RESULT_COMPUTED;
    case ADD:
    case SUB:
    case XOR: return is_same ? RESULT_ANY : RESULT_AS_BEFORE;
    default: return RESULT_ANY;
    }
}

static enum result of_one_byte(const struct code_x86 *x)
{
    unsigned group = x->reg & 7;
    switch (x->opcode) {
    case 0x00 ... 0x3f: return of_operation(x->opcode >> 3 & 7, (x->opcode & 7) >= 4, x->mode == 3 && x->low == x->reg);
    case 0x80 ... 0x83: return of_operation(group, true, false);
    case 0xc0 ... 0xc1:
    case 0xd0 ... 0xd3: return group >= 4 ? RESULT_COMPUTED : group < 2 ? RESULT_AS_BEFORE : RESULT_ANY; // shifts, rol
    case 0xf6 ... 0xf7: return group >= 4 ? RESULT_COMPUTED : RESULT_AS_BEFORE; // mul, imul, div, idiv; not, neg
    case 0x69:
    case 0x6b: return RESULT_COMPUTED; // imul
    default: return RESULT_ANY;
    }
}

static enum result of_0f(const struct code_x86 *x)
{
    switch (x->opcode) {
    case 0x90 ... 0x9f: // setcc
    case 0xa4 ... 0xa5: // shld, shrd
    case 0xac ... 0xad:
    case 0xaf: // imul
    case 0xbc ... 0xbd: return RESULT_COMPUTED;
    case 0xb8: return x->repeat == 0xf3 ? RESULT_COMPUTED : RESULT_ANY; // popcnt
    case 0xc8 ... 0xcf: return RESULT_AS_BEFORE;                        // bswap
    default: return RESULT_ANY;
    }
}

// adcx, adox
static enum result of_0f38(const struct code_x86 *x)
{
    return x->opcode == 0xf6 && (x->half_operand || x->repeat == 0xf3) ? RESULT_COMPUTED : RESULT_ANY;
}

// Of those of VEX the first operand alone is written, but of mulx.
static unsigned vex_computed_count(const struct code_x86 *x)
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
    bool is_legacy = x->encoding == ENCODING_LEGACY;
    unsigned count = is_legacy ? in->op_count : vex_computed_count(x);
    enum result result = !is_legacy           ? RESULT_COMPUTED
                         : x->map == MAP_ONE  ? of_one_byte(x)
                         : x->map == MAP_0F   ? of_0f(x)
                         : x->map == MAP_0F38 ? of_0f38(x)
                                              : RESULT_ANY;
    for (unsigned i = 0; i < in->op_count && i < count && result != RESULT_ANY; i++) {
        struct code_op *op = &in->ops[i];
        if (op->kind != CODE_OP_LOSE)
            continue;
        op->kind = CODE_OP_COMPUTE;
        op->from = result == RESULT_AS_BEFORE ? op->to : CODE_REG_NONE;
    }
}
