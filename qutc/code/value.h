// SPDX-License-Identifier: Apache-2.0
// What instructions make of values: numbers, indexes, elements of jump tables.
#ifndef QUTC_CODE_VALUE_H
#define QUTC_CODE_VALUE_H

#include "qutc/code/state.h"

static inline struct code_value code_value_unknown(uint32_t pc, unsigned reg)
{
    return (struct code_value){.kind = CODE_VALUE_UNKNOWN, .of = reg, .number = (int64_t)pc + 1};
}

static inline struct code_value code_value_constant(int64_t number)
{
    return (struct code_value){.kind = CODE_VALUE_CONST, .number = number};
}

// What a load that is not of a whole word cannot exceed; 0: nothing.
static inline uint32_t code_value_range(const struct code_op *op)
{
    return op->size_bytes < 4 && !op->negative ? (uint32_t)1 << 8 * op->size_bytes : 0;
}

// An address of the file, that tables may be at.
bool code_value_is_place(const struct code_machine *machine, const struct code_value *value);
// What is loaded from `at` + op's number, an element of a table. False: `at` is in none.
bool code_value_of_table(struct code_machine *machine, const struct code_value *at, const struct code_op *op,
                         uint32_t pc, struct code_value *value);

// The operations of these names, of the state before them.
struct code_value code_value_indexed(struct code_machine *machine, const struct code_state *state,
                                     const struct code_op *op, uint32_t pc);
struct code_value code_value_add(const struct code_state *state, const struct code_op *op, uint32_t pc);
struct code_value code_value_and(const struct code_state *state, const struct code_op *op, uint32_t pc);
struct code_value code_value_or(const struct code_state *state, const struct code_op *op, uint32_t pc);
struct code_value code_value_shift(const struct code_state *state, const struct code_op *op, uint32_t pc);
struct code_value code_value_extend(const struct code_machine *machine, const struct code_state *state,
                                    const struct code_op *op, uint32_t pc);
struct code_value code_value_insert(const struct code_state *state, const struct code_op *op, uint32_t pc);

#endif
