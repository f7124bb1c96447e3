// SPDX-License-Identifier: Apache-2.0
// What is known between two instructions of a function: of each register, and of words on the stack, in terms of what
// registers held when the function was entered.
#ifndef QUTC_CODE_STATE_H
#define QUTC_CODE_STATE_H

#include <string.h>

#include "base/vector.h"
#include "qutc/code/op.h"
#include "qutc/input/image.h"

enum code_value_kind {
    CODE_VALUE_UNKNOWN, // `number` tells it from other such values
    CODE_VALUE_ENTRY,   // what register `of` held at the function's entry, + number
    CODE_VALUE_CONST,   // number
    CODE_VALUE_PLACE,   // number, an address of the file that was kept on the stack: good for tables alone
    CODE_VALUE_BASE,    // what sp was at pc `of`, where it was set, or where ways met that have it elsewhere; + number
    CODE_VALUE_SCALED,  // number + (an index << shift), made at pc `of`; the bound is the index's
    CODE_VALUE_LOADED,  // an element of the jump table `of`, << shift
    CODE_VALUE_TARGET,  // ... + number
};

struct code_value {
    uint8_t kind; // enum code_value_kind
    bool is_signed, key_b;
    bool is_odd; // TARGET: bit 0 is set at last
    uint8_t shift;
    bool is_computed;    // UNKNOWN: the result of arithmetic that nothing takes back
    uint16_t byte_bound; // not 0: below that is its lowest byte
    uint32_t of;
    uint32_t bound; // not 0: below that, unsigned
    int64_t number;
};

// A word of the stack at what sp was at the entry + offset, or at what it was set to at pc `base` + offset.
struct code_slot {
    uint32_t base;
    int32_t offset;
    struct code_value value;
};

enum { CODE_SLOTS_MAX = 20, CODE_BASE_ENTRY = UINT32_MAX };

struct code_state {
    struct code_value reg[CODE_REGISTERS];
    struct code_slot slot[CODE_SLOTS_MAX];
    unsigned slot_count;
    uint8_t register_count;     // of the machine; behind them only CODE_REG_SCRATCH counts
    uint32_t version;           // changes with all that rules are made of
    struct code_value compared; // with compared_with, by the last comparison; UNKNOWN of number 0: with nothing
    int64_t compared_with;
    uint8_t compared_bytes; // of them so many were compared
    bool compares_number;   // the number with the register: branches say the opposite
};

// Elements of size_bytes, the first at vaddr; a negative one is possible where is_signed.
struct code_table {
    uint64_t vaddr;
    uint32_t at; // pc of the instruction that reads it
    uint8_t shift, size_bytes;
    bool is_signed;
    uint32_t bound; // 0: not known
};

// What stays the same while states change.
struct code_machine {
    const struct arch *arch;
    const struct code_arch *code;
    const struct input_image *image;
    bool has_literals; // numbers that code loads from beside itself are those of the file
    BASE_VECTOR(struct code_table) tables;
    // Registers that were loaded back from where they had been saved, and where.
    struct code_slot restored[CODE_REGISTERS]; // value.kind UNKNOWN: none
    uint32_t versions;                         // that states have had
    // Registers that calls keep: those that another value was put into; those whose value at the entry was put into
    // memory or a vector; those that a number was added to, or taken from; and that anything was done to but that. Of
    // instructions that were met since a walk began.
    uint64_t overwritten, stored, raised, lowered, written;
    bool no_memory;
};

// The registers that a state has: 0, ..., CODE_REG_SCRATCH, CODE_REGISTERS.
static inline unsigned code_state_next(const struct code_state *state, unsigned reg)
{
    return reg + 1 == state->register_count ? CODE_REG_SCRATCH : reg + 1;
}

// Of what a state has room for, most architectures use half: following copies states more than anything else.
static inline void code_state_copy(struct code_state *to, const struct code_state *from)
{
    for (unsigned i = 0; i < from->register_count; i++)
        to->reg[i] = from->reg[i];
    to->reg[CODE_REG_SCRATCH] = from->reg[CODE_REG_SCRATCH];
    for (unsigned i = 0; i < from->slot_count; i++)
        to->slot[i] = from->slot[i];
    memcpy(&to->slot_count, &from->slot_count, sizeof *from - offsetof(struct code_state, slot_count));
}

void code_state_enter(const struct code_machine *machine, struct code_state *state);
// pc: of the instruction, relative to the text; names what it makes.
void code_state_apply(struct code_machine *machine, struct code_state *state, const struct code_instruction *in,
                      uint32_t pc);
void code_state_compare(struct code_state *state, const struct code_op *op); // that an operation makes
// What a callee leaves: `kept` registers.
void code_state_call(struct code_machine *machine, struct code_state *state, uint64_t kept, uint32_t pc);
// What a branch says of the register that was compared.
void code_state_branch(struct code_state *state, enum code_when when, bool taken);
// What holds on two ways to pc. True where `into` changed.
bool code_state_merge(struct code_state *into, const struct code_state *from, unsigned sp_reg, uint32_t pc);

static inline bool code_value_same(const struct code_value *a, const struct code_value *b)
{
    return a->kind == b->kind && a->of == b->of && a->number == b->number && a->is_signed == b->is_signed &&
           a->shift == b->shift && a->is_odd == b->is_odd;
}

static inline bool code_value_is_entry(const struct code_value *value, unsigned reg, int64_t number)
{
    return value->kind == CODE_VALUE_ENTRY && value->of == reg && value->number == number && !value->is_signed;
}

// Of a value the low four bytes, as another value: the comparison of one half bounds both.
struct code_value code_value_low_half(const struct code_value *value);

// The word at an address; NULL: nothing is known of it.
const struct code_slot *code_state_slot(const struct code_machine *machine, const struct code_state *state,
                                        const struct code_value *base, int64_t number);

#endif
