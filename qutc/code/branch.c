// SPDX-License-Identifier: Apache-2.0
// What a comparison and the branch behind it say of registers: the bounds of indexes.
#include "qutc/code/state.h"

struct code_value code_value_low_half(const struct code_value *value)
{
    struct code_value low = *value;
    if (value->kind == CODE_VALUE_UNKNOWN)
        return low;
    return (struct code_value){.kind = CODE_VALUE_UNKNOWN,
                               .of = value->of | (uint32_t)value->kind << 24,
                               .bound = value->bound,
                               .number = -1 - (value->number & UINT32_MAX)};
}

void code_state_compare(struct code_state *state, const struct code_op *op)
{
    if (op->from >= CODE_REGISTERS)
        return;
    const struct code_value *from = &state->reg[op->from];
    state->compared_bytes = op->size_bytes;
    state->compares_number = op->other < CODE_REGISTERS && from->kind == CODE_VALUE_CONST;
    if (op->other == CODE_REG_NONE) {
        state->compared = *from;
        state->compared_with = op->number;
    } else if (state->compares_number) {
        state->compared = state->reg[op->other];
        state->compared_with = from->number;
    } else if (state->reg[op->other].kind == CODE_VALUE_CONST) {
        state->compared = *from;
        state->compared_with = state->reg[op->other].number;
    }
}

void code_state_branch(struct code_state *state, enum code_when when, bool taken)
{
    int64_t number = state->compared_with;
    uint32_t bound = 0;
    if ((state->compared.kind == CODE_VALUE_UNKNOWN && state->compared.number == 0) || number < 0 || number >= 1 << 20)
        return;
    if (state->compared.kind == CODE_VALUE_SCALED ||
        state->compared.kind == CODE_VALUE_TARGET) // of a sum, not its index
        return;
    if (state->compares_number)
        when = when == CODE_WHEN_ABOVE      ? CODE_WHEN_BELOW
               : when == CODE_WHEN_BELOW    ? CODE_WHEN_ABOVE
               : when == CODE_WHEN_AT_LEAST ? CODE_WHEN_AT_MOST
               : when == CODE_WHEN_AT_MOST  ? CODE_WHEN_AT_LEAST
                                            : when;
    if ((when == CODE_WHEN_ABOVE && !taken) || (when == CODE_WHEN_AT_MOST && taken))
        bound = (uint32_t)number + 1;
    else if ((when == CODE_WHEN_AT_LEAST && !taken) || (when == CODE_WHEN_BELOW && taken))
        bound = (uint32_t)number;
    if (bound == 0)
        return;
    struct code_value low = code_value_low_half(&state->compared);
    for (unsigned i = 0; i < CODE_REGISTERS; i = code_state_next(state, i)) {
        struct code_value *reg = &state->reg[i];
        if (!code_value_same(reg, &state->compared) && !code_value_same(reg, &low))
            continue;
        // What is above a byte that is compared may be anything, unless the whole is known to be no more than a byte.
        bool is_whole = state->compared_bytes >= 4 || (reg->bound && reg->bound <= 256);
        if (is_whole)
            reg->bound = bound;
        if (state->compared_bytes == 1 && bound <= 256)
            reg->byte_bound = (uint16_t)bound;
    }
}
