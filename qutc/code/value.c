// SPDX-License-Identifier: Apache-2.0
#include "qutc/code/value.h"

bool code_value_is_place(const struct code_machine *machine, const struct code_value *value)
{
    enum { LOWEST = 4096 };
    return (value->kind == CODE_VALUE_CONST || value->kind == CODE_VALUE_PLACE) && value->number >= LOWEST &&
           input_image_some(machine->image, (uint64_t)value->number, 1).size > 0;
}

// ---- jump tables

static bool is_number(const struct code_value *value)
{
    return value->kind == CODE_VALUE_CONST || value->kind == CODE_VALUE_PLACE;
}

// An element of the table that `at` and op describe.
static struct code_value element_of(struct code_machine *machine, const struct code_op *op,
                                    const struct code_table *table)
{
    struct code_value value = {.kind = CODE_VALUE_LOADED, .bound = code_value_range(op)};
    for (; value.of < machine->tables.count; value.of++)
        if (machine->tables.items[value.of].at == table->at)
            break;
    if (value.of == machine->tables.count && !BASE_ADD(&machine->tables)) {
        machine->no_memory = true;
        return code_value_unknown(table->at, op->to);
    }
    machine->tables.items[value.of] = *table;
    if (machine->arch->word_bytes == 4)
        machine->tables.items[value.of].vaddr &= UINT32_MAX;
    return value;
}

bool code_value_of_table(struct code_machine *machine, const struct code_value *at, const struct code_op *op,
                         uint32_t pc, struct code_value *value)
{
    // Elements of one table may be indexes of another: where one lies is then the sum of that and an index.
    bool is_scaled = at->kind == CODE_VALUE_SCALED || (at->kind == CODE_VALUE_TARGET && at->bound && !at->is_odd);
    if (!is_scaled || at->shift > 3 || op->size_bytes != 1u << at->shift)
        return false;
    struct code_table table = {.vaddr = (uint64_t)at->number + (uint64_t)op->number,
                               .at = pc,
                               .shift = at->shift,
                               .size_bytes = op->size_bytes,
                               .is_signed = op->negative,
                               .bound = at->bound};
    *value = element_of(machine, op, &table);
    return true;
}

// A number that stands beside the code, which is as the file has it.
static struct code_value literal(const struct code_machine *machine, const struct code_op *op, uint32_t pc)
{
    const struct input_image *image = machine->image;
    uint64_t vaddr = (uint64_t)op->number;
    for (unsigned i = 0; machine->has_literals && i < image->exec_count; i++) {
        if (vaddr < image->exec[i].start || vaddr >= image->exec[i].end)
            continue;
        struct base_cursor c = base_cursor(input_image_some(image, vaddr, op->size_bytes));
        unsigned shift = 64 - 8u * op->size_bytes;
        uint64_t bits = base_read_uint(&c, op->size_bytes) << shift;
        if (!c.failed)
            return code_value_constant(op->negative ? (int64_t)bits >> shift : (int64_t)(bits >> shift));
    }
    return code_value_unknown(pc, op->to);
}

struct code_value code_value_indexed(struct code_machine *machine, const struct code_state *state,
                                     const struct code_op *op, uint32_t pc)
{
    if (op->other == CODE_REG_NONE)
        return literal(machine, op, pc);
    struct code_value base = op->from == CODE_REG_NONE ? code_value_constant(0) : state->reg[op->from];
    struct code_value index = state->reg[op->other];
    if (!is_number(&base) && is_number(&index) && op->shift == 0) {
        struct code_value swapped = base;
        base = index;
        index = swapped;
    }
    if (!is_number(&base) || (op->size_bytes < 4 && op->size_bytes != 1u << op->shift))
        return code_value_unknown(pc, op->to);
    struct code_table table = {.vaddr = (uint64_t)(base.number + op->number),
                               .at = pc,
                               .shift = op->shift,
                               .size_bytes = op->size_bytes,
                               .is_signed = op->negative,
                               .bound = index.bound};
    return element_of(machine, op, &table);
}

// ---- numbers

// number + (what << shift), where that leads into a table or out of one.
static bool add_in_table(int64_t number, const struct code_value *what, unsigned shift, uint32_t pc,
                         struct code_value *sum)
{
    *sum = *what;
    sum->number = number;
    sum->shift = (uint8_t)(what->shift + shift);
    switch (what->kind) {
    case CODE_VALUE_LOADED: sum->kind = CODE_VALUE_TARGET; return true;
    case CODE_VALUE_SCALED: sum->number = (int64_t)((uint64_t)number + (uint64_t)what->number); return shift == 0;
    case CODE_VALUE_UNKNOWN: // an index
        *sum = (struct code_value){
            .kind = CODE_VALUE_SCALED, .of = pc, .shift = (uint8_t)shift, .bound = what->bound, .number = number};
        return what->bound && shift < 4;
    default: return false;
    }
}

struct code_value code_value_add(const struct code_state *state, const struct code_op *op, uint32_t pc)
{
    struct code_value a = state->reg[op->from], b = state->reg[op->other], sum;
    bool is_plain = op->shift == 0 && !op->negative;
    int64_t more = op->number;
    if (!op->negative && is_number(&a) &&
        add_in_table((int64_t)((uint64_t)a.number + (uint64_t)more), &b, op->shift, pc, &sum))
        return sum;
    if (is_plain && is_number(&b) && add_in_table((int64_t)((uint64_t)b.number + (uint64_t)more), &a, 0, pc, &sum))
        return sum;
    if (a.kind == CODE_VALUE_CONST && b.kind != CODE_VALUE_CONST && is_plain) {
        struct code_value swapped = a;
        a = b;
        b = swapped;
    }
    bool is_sum = a.kind == CODE_VALUE_ENTRY || a.kind == CODE_VALUE_CONST || a.kind == CODE_VALUE_BASE;
    if (b.kind != CODE_VALUE_CONST || !is_sum || b.number > INT32_MAX || b.number < INT32_MIN || op->shift > 31)
        return code_value_unknown(pc, op->to);
    int64_t shifted = (int64_t)((uint64_t)b.number << op->shift);
    a.number = (int64_t)((uint64_t)a.number + (uint64_t)(op->negative ? -shifted : shifted) + (uint64_t)op->number);
    a.bound = a.byte_bound = 0;
    return a;
}

struct code_value code_value_and(const struct code_state *state, const struct code_op *op, uint32_t pc)
{
    const struct code_value *from = &state->reg[op->from];
    if (from->kind == CODE_VALUE_CONST)
        return code_value_constant(from->number & op->number);
    struct code_value value = code_value_unknown(pc, op->to);
    if (op->number >= 0 && op->number < INT32_MAX)
        value.bound = (uint32_t)op->number + 1;
    return value;
}

struct code_value code_value_or(const struct code_state *state, const struct code_op *op, uint32_t pc)
{
    struct code_value value = state->reg[op->from];
    if (value.kind == CODE_VALUE_CONST)
        return code_value_constant(value.number | op->number);
    if (value.kind != CODE_VALUE_TARGET || op->number != 1)
        return code_value_unknown(pc, op->to);
    value.is_odd = true;
    return value;
}

struct code_value code_value_shift(const struct code_state *state, const struct code_op *op, uint32_t pc)
{
    struct code_value value = state->reg[op->from];
    if (value.kind == CODE_VALUE_CONST && op->shift < 63)
        return code_value_constant((int64_t)((uint64_t)value.number << op->shift));
    if (value.kind == CODE_VALUE_LOADED && value.shift + op->shift < 32) {
        value.shift = (uint8_t)(value.shift + op->shift);
        return value;
    }
    if (value.kind == CODE_VALUE_UNKNOWN && value.bound && op->shift < 4) // an index
        return (struct code_value){.kind = CODE_VALUE_SCALED, .of = pc, .shift = op->shift, .bound = value.bound};
    return code_value_unknown(pc, op->to);
}

struct code_value code_value_extend(const struct code_machine *machine, const struct code_state *state,
                                    const struct code_op *op, uint32_t pc)
{
    const struct code_value *from = &state->reg[op->from];
    if (from->kind == CODE_VALUE_LOADED && from->shift == 0 &&
        op->size_bytes == machine->tables.items[from->of].size_bytes) {
        machine->tables.items[from->of].is_signed = op->negative;
        struct code_value element = *from;
        element.bound = code_value_range(op);
        return element;
    }
    unsigned shift = 64 - 8u * op->size_bytes;
    if (from->kind == CODE_VALUE_CONST) {
        uint64_t bits = (uint64_t)from->number << shift;
        return code_value_constant(op->negative ? (int64_t)bits >> shift : (int64_t)(bits >> shift));
    }
    if (from->kind == CODE_VALUE_LOADED && op->size_bytes == 4)
        return *from;
    if (op->size_bytes == 4)
        return code_value_low_half(from);
    struct code_value value = code_value_unknown(pc, op->to);
    value.bound = code_value_range(op);
    if (op->size_bytes == 1 && !op->negative && from->byte_bound)
        value.bound = from->byte_bound;
    return value;
}

struct code_value code_value_insert(const struct code_state *state, const struct code_op *op, uint32_t pc)
{
    const struct code_value *from = &state->reg[op->to];
    if (from->kind != CODE_VALUE_CONST || op->shift > 63 || op->size_bytes > 4)
        return code_value_unknown(pc, op->to);
    uint64_t bits = (((uint64_t)1 << 8 * op->size_bytes) - 1) << op->shift;
    return code_value_constant(
        (int64_t)(((uint64_t)from->number & ~bits) | ((uint64_t)op->number << op->shift & bits)));
}
