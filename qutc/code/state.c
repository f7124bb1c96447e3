// SPDX-License-Identifier: Apache-2.0
#include "qutc/code/state.h"

static struct code_value unknown(uint32_t pc, unsigned reg)
{
    return (struct code_value){.kind = CODE_VALUE_UNKNOWN, .of = reg, .number = (int64_t)pc + 1};
}

static struct code_value constant(int64_t number)
{
    return (struct code_value){.kind = CODE_VALUE_CONST, .number = number};
}

void code_state_enter(const struct code_machine *machine, struct code_state *state)
{
    const struct arch *arch = machine->arch;
    memset(state, 0, sizeof *state);
    state->register_count = (uint8_t)arch->register_count;
    for (unsigned i = 0; i < arch->register_count; i++)
        state->reg[i] = (struct code_value){.kind = CODE_VALUE_ENTRY, .of = i};
    if (arch->ra_in_register)
        return;
    state->reg[arch->ra_reg] = unknown(UINT32_MAX, arch->ra_reg);
    state->slot[state->slot_count++] =
        (struct code_slot){CODE_BASE_ENTRY, 0, {.kind = CODE_VALUE_ENTRY, .of = arch->ra_reg}};
}

// ---- the stack

// Where an address lies. False: not on a part of the stack that is known.
static bool place_of(const struct code_machine *machine, const struct code_value *base, int64_t number, uint32_t *which,
                     int32_t *offset)
{
    bool is_entry = base->kind == CODE_VALUE_ENTRY && base->of == machine->arch->sp_reg && !base->is_signed;
    int64_t at = base->number + number;
    if ((!is_entry && base->kind != CODE_VALUE_BASE) || at < INT32_MIN / 2 || at > INT32_MAX / 2)
        return false;
    *which = is_entry ? CODE_BASE_ENTRY : base->of;
    *offset = (int32_t)at;
    return true;
}

const struct code_slot *code_state_slot(const struct code_machine *machine, const struct code_state *state,
                                        const struct code_value *base, int64_t number)
{
    uint32_t which;
    int32_t offset;
    if (!place_of(machine, base, number, &which, &offset))
        return NULL;
    for (unsigned i = 0; i < state->slot_count; i++)
        if (state->slot[i].base == which && state->slot[i].offset == offset)
            return &state->slot[i];
    return NULL;
}

static void drop_slot(struct code_state *state, unsigned i)
{
    state->version = 0;
    state->slot[i] = state->slot[--state->slot_count];
}

static bool is_worth_keeping(const struct code_machine *machine, const struct code_value *value)
{
    if (value->kind == CODE_VALUE_BASE)
        return true;
    uint64_t kept = machine->code->kept | (uint64_t)1 << machine->arch->ra_reg;
    return value->kind == CODE_VALUE_ENTRY && kept >> value->of & 1;
}

static void store(const struct code_machine *machine, struct code_state *state, const struct code_op *op)
{
    uint32_t which;
    int32_t offset, word = machine->arch->word_bytes;
    if (!place_of(machine, &state->reg[op->to], op->number, &which, &offset))
        return;
    for (unsigned i = state->slot_count; i-- > 0;) {
        const struct code_slot *slot = &state->slot[i];
        if (slot->base == which && slot->offset < offset + op->size_bytes && offset < slot->offset + word)
            drop_slot(state, i);
    }
    if (op->from == CODE_REG_NONE || op->size_bytes != word || state->slot_count == CODE_SLOTS_MAX)
        return;
    const struct code_value *value = &state->reg[op->from];
    if (!is_worth_keeping(machine, value))
        return;
    state->slot[state->slot_count++] = (struct code_slot){which, offset, *value};
    state->version = 0;
}

// An element of the table that `at` and op describe.
static struct code_value element_of(struct code_machine *machine, const struct code_op *op,
                                    const struct code_table *table)
{
    struct code_value value = {.kind = CODE_VALUE_LOADED};
    for (; value.of < machine->tables.count; value.of++)
        if (machine->tables.items[value.of].at == table->at)
            break;
    if (value.of == machine->tables.count && !BASE_ADD(&machine->tables)) {
        machine->no_memory = true;
        return unknown(table->at, op->to);
    }
    machine->tables.items[value.of] = *table;
    return value;
}

static struct code_value load(struct code_machine *machine, const struct code_state *state, const struct code_op *op,
                              uint32_t pc)
{
    if (op->from != CODE_REG_NONE && state->reg[op->from].kind == CODE_VALUE_SCALED &&
        op->size_bytes == 1u << state->reg[op->from].shift) {
        const struct code_value *at = &state->reg[op->from];
        struct code_table table = {.vaddr = (uint64_t)at->number + (uint64_t)op->number,
                                   .at = pc,
                                   .shift = at->shift,
                                   .size_bytes = op->size_bytes,
                                   .is_signed = op->negative,
                                   .bound = at->bound};
        return element_of(machine, op, &table);
    }
    struct code_value value = unknown(pc, op->to);
    if (op->size_bytes < 4 && !op->negative)
        value.bound = (uint32_t)1 << 8 * op->size_bytes;
    if (op->from == CODE_REG_NONE || op->size_bytes != machine->arch->word_bytes)
        return value;
    const struct code_slot *slot = code_state_slot(machine, state, &state->reg[op->from], op->number);
    if (!slot)
        return value;
    if (code_value_is_entry(&slot->value, op->to, 0))
        machine->restored[op->to] = *slot;
    return slot->value;
}

// ---- jump tables

static struct code_value load_indexed(struct code_machine *machine, const struct code_state *state,
                                      const struct code_op *op, uint32_t pc)
{
    if (op->other == CODE_REG_NONE) // a literal
        return unknown(pc, op->to);
    struct code_value base = op->from == CODE_REG_NONE ? constant(0) : state->reg[op->from];
    struct code_value index = state->reg[op->other];
    if (base.kind != CODE_VALUE_CONST && index.kind == CODE_VALUE_CONST && op->shift == 0) {
        struct code_value swapped = base;
        base = index;
        index = swapped;
    }
    if (base.kind != CODE_VALUE_CONST || (op->size_bytes < 4 && op->size_bytes != 1u << op->shift))
        return unknown(pc, op->to);
    struct code_table table = {.vaddr = (uint64_t)(base.number + op->number),
                               .at = pc,
                               .shift = op->shift,
                               .size_bytes = op->size_bytes,
                               .is_signed = op->negative,
                               .bound = index.bound};
    return element_of(machine, op, &table);
}

// ---- numbers

static struct code_value add(const struct code_state *state, const struct code_op *op, uint32_t pc)
{
    struct code_value a = state->reg[op->from], b = state->reg[op->other];
    if (op->shift == 0 && !op->negative && (a.kind == CODE_VALUE_CONST || b.kind == CODE_VALUE_CONST) &&
        (a.kind == CODE_VALUE_LOADED || b.kind == CODE_VALUE_LOADED)) {
        struct code_value element = a.kind == CODE_VALUE_LOADED ? a : b, base = a.kind == CODE_VALUE_LOADED ? b : a;
        return (struct code_value){
            .kind = CODE_VALUE_TARGET, .of = element.of, .shift = element.shift, .number = base.number + op->number};
    }
    if (a.kind == CODE_VALUE_CONST && b.kind == CODE_VALUE_LOADED && !op->negative) // shifted
        return (struct code_value){.kind = CODE_VALUE_TARGET,
                                   .of = b.of,
                                   .shift = (uint8_t)(b.shift + op->shift),
                                   .number = a.number + op->number};
    if (op->shift == 0 && !op->negative &&
        ((a.kind == CODE_VALUE_SCALED && b.kind == CODE_VALUE_CONST) ||
         (b.kind == CODE_VALUE_SCALED && a.kind == CODE_VALUE_CONST))) {
        struct code_value sum = a.kind == CODE_VALUE_SCALED ? a : b;
        sum.number = (int64_t)((uint64_t)a.number + (uint64_t)b.number + (uint64_t)op->number);
        return sum;
    }
    if (a.kind == CODE_VALUE_CONST && b.kind != CODE_VALUE_CONST && op->shift == 0 && !op->negative) {
        struct code_value swapped = a;
        a = b;
        b = swapped;
    }
    bool is_sum = a.kind == CODE_VALUE_ENTRY || a.kind == CODE_VALUE_CONST || a.kind == CODE_VALUE_BASE;
    if (b.kind != CODE_VALUE_CONST || !is_sum || b.number > INT32_MAX || b.number < INT32_MIN || op->shift > 31)
        return unknown(pc, op->to);
    int64_t shifted = (int64_t)((uint64_t)b.number << op->shift);
    a.number = (int64_t)((uint64_t)a.number + (uint64_t)(op->negative ? -shifted : shifted) + (uint64_t)op->number);
    a.bound = 0;
    return a;
}

static struct code_value mask(const struct code_state *state, const struct code_op *op, uint32_t pc)
{
    const struct code_value *from = &state->reg[op->from];
    if (from->kind == CODE_VALUE_CONST)
        return constant(from->number & op->number);
    struct code_value value = unknown(pc, op->to);
    if (op->number >= 0 && op->number < INT32_MAX)
        value.bound = (uint32_t)op->number + 1;
    return value;
}

static struct code_value shift_left(const struct code_state *state, const struct code_op *op, uint32_t pc)
{
    struct code_value value = state->reg[op->from];
    if (value.kind == CODE_VALUE_CONST && op->shift < 63)
        return constant((int64_t)((uint64_t)value.number << op->shift));
    if (value.kind == CODE_VALUE_LOADED && value.shift + op->shift < 32) {
        value.shift = (uint8_t)(value.shift + op->shift);
        return value;
    }
    if (value.kind == CODE_VALUE_UNKNOWN && value.bound && op->shift < 4) // an index
        return (struct code_value){.kind = CODE_VALUE_SCALED, .shift = op->shift, .bound = value.bound};
    return unknown(pc, op->to);
}

static struct code_value extend(const struct code_machine *machine, const struct code_state *state,
                                const struct code_op *op, uint32_t pc)
{
    const struct code_value *from = &state->reg[op->from];
    if (from->kind == CODE_VALUE_LOADED && from->shift == 0 &&
        op->size_bytes == machine->tables.items[from->of].size_bytes) {
        machine->tables.items[from->of].is_signed = op->negative;
        return *from;
    }
    unsigned shift = 64 - 8u * op->size_bytes;
    if (from->kind == CODE_VALUE_CONST) {
        uint64_t bits = (uint64_t)from->number << shift;
        return constant(op->negative ? (int64_t)bits >> shift : (int64_t)(bits >> shift));
    }
    if (from->kind == CODE_VALUE_LOADED && op->size_bytes == 4)
        return *from;
    if (op->size_bytes == 4)
        return code_value_low_half(from);
    struct code_value value = unknown(pc, op->to);
    if (!op->negative)
        value.bound = (uint32_t)1 << 8 * op->size_bytes;
    return value;
}

static struct code_value insert(const struct code_state *state, const struct code_op *op, uint32_t pc)
{
    const struct code_value *from = &state->reg[op->to];
    if (from->kind != CODE_VALUE_CONST || op->shift > 63 || op->size_bytes > 4)
        return unknown(pc, op->to);
    uint64_t bits = (((uint64_t)1 << 8 * op->size_bytes) - 1) << op->shift;
    return constant((int64_t)(((uint64_t)from->number & ~bits) | ((uint64_t)op->number << op->shift & bits)));
}

static struct code_value result(struct code_machine *machine, const struct code_state *state, const struct code_op *op,
                                uint32_t pc)
{
    struct code_value value = {0};
    switch (op->kind) {
    case CODE_OP_SET:
        if (op->from == CODE_REG_NONE)
            return constant(op->number);
        value = state->reg[op->from];
        if (op->number == 0)
            return value;
        if (value.kind == CODE_VALUE_ENTRY || value.kind == CODE_VALUE_CONST || value.kind == CODE_VALUE_BASE) {
            value.number = (int64_t)((uint64_t)value.number + (uint64_t)op->number);
            value.bound = 0;
            return value;
        }
        if (value.kind == CODE_VALUE_LOADED) {
            value.kind = CODE_VALUE_TARGET;
            value.number = op->number;
            return value;
        }
        return unknown(pc, op->to);
    case CODE_OP_ADD: return add(state, op, pc);
    case CODE_OP_AND: return mask(state, op, pc);
    case CODE_OP_SHIFT: return shift_left(state, op, pc);
    case CODE_OP_INSERT: return insert(state, op, pc);
    case CODE_OP_EXTEND: return extend(machine, state, op, pc);
    case CODE_OP_LOAD: return load(machine, state, op, pc);
    case CODE_OP_INDEXED: return load_indexed(machine, state, op, pc);
    case CODE_OP_SIGN:
    case CODE_OP_AUTH:
        value = state->reg[op->to];
        value.is_signed = op->kind == CODE_OP_SIGN;
        value.key_b = value.is_signed && op->number;
        return value;
    default: return unknown(pc, op->to);
    }
}

// What was said in terms of an sp that is set anew is of an earlier one.
static void forget_base(struct code_state *state, uint32_t base)
{
    for (unsigned i = 0; i < CODE_REGISTERS; i = code_state_next(state, i))
        if (state->reg[i].kind == CODE_VALUE_BASE && state->reg[i].of == base)
            state->reg[i] = unknown(base, i);
    for (unsigned i = state->slot_count; i-- > 0;)
        if (state->slot[i].base == base ||
            (state->slot[i].value.kind == CODE_VALUE_BASE && state->slot[i].value.of == base))
            drop_slot(state, i);
}

// Where sp rises, a signal's handler may write what is then below it.
static void drop_below(const struct code_machine *machine, struct code_state *state, const struct code_value *sp)
{
    const struct code_value *before = &state->reg[machine->arch->sp_reg];
    if (sp->kind != before->kind || sp->of != before->of || sp->number <= before->number)
        return;
    uint32_t base = sp->kind == CODE_VALUE_BASE ? sp->of : CODE_BASE_ENTRY;
    for (unsigned i = state->slot_count; i-- > 0;)
        if (state->slot[i].base == base && state->slot[i].offset < sp->number - machine->code->red_zone_bytes)
            drop_slot(state, i);
}

// Whether rules are made of such a value, or judged by it.
static bool is_telling(const struct code_value *value)
{
    return value->kind == CODE_VALUE_ENTRY || value->kind == CODE_VALUE_CONST || value->kind == CODE_VALUE_BASE;
}

void code_state_apply(struct code_machine *machine, struct code_state *state, const struct code_instruction *in,
                      uint32_t pc)
{
    for (unsigned i = 0; i < in->op_count; i++) {
        const struct code_op *op = &in->ops[i];
        bool keeps_flags = op->kind == CODE_OP_LOAD || op->kind == CODE_OP_STORE || op->kind == CODE_OP_EXTEND ||
                           op->kind == CODE_OP_INDEXED || (op->kind == CODE_OP_SET && op->to != op->from);
        if (!keeps_flags)
            state->compared = (struct code_value){0};
        if (op->kind == CODE_OP_STORE) {
            store(machine, state, op);
            continue;
        }
        if (op->kind == CODE_OP_COMPARE) {
            code_state_compare(state, op);
            continue;
        }
        struct code_value value = result(machine, state, op, pc);
        if (op->to == machine->arch->sp_reg && value.kind != CODE_VALUE_ENTRY && value.kind != CODE_VALUE_BASE) {
            forget_base(state, pc);
            value = (struct code_value){.kind = CODE_VALUE_BASE, .of = pc};
        }
        if (is_telling(&value) || is_telling(&state->reg[op->to]))
            state->version = 0;
        if (op->to == machine->arch->sp_reg)
            drop_below(machine, state, &value);
        state->reg[op->to] = value;
    }
    if (state->version == 0)
        state->version = ++machine->versions;
}

void code_state_call(struct code_machine *machine, struct code_state *state, uint64_t kept, uint32_t pc)
{
    for (unsigned i = 0; i < CODE_REGISTERS; i = code_state_next(state, i))
        if (i >= machine->arch->register_count || !(kept >> i & 1))
            state->reg[i] = unknown(pc, i);
    state->compared = (struct code_value){0};
    const struct code_value *sp = &state->reg[machine->arch->sp_reg];
    for (unsigned i = state->slot_count; i-- > 0;) {
        bool is_of_sp =
            sp->kind == CODE_VALUE_BASE ? state->slot[i].base == sp->of : state->slot[i].base == CODE_BASE_ENTRY;
        if (is_of_sp && state->slot[i].offset < sp->number)
            drop_slot(state, i);
    }
    state->version = ++machine->versions;
}

bool code_state_merge(struct code_state *into, const struct code_state *from, uint32_t pc)
{
    bool changed = false;
    for (unsigned i = 0; i < CODE_REGISTERS; i = code_state_next(into, i)) {
        struct code_value *a = &into->reg[i];
        const struct code_value *b = &from->reg[i];
        if (!code_value_same(a, b)) {
            struct code_value merged = unknown(pc, i | 0x100);
            changed |= !code_value_same(a, &merged) || a->bound != 0;
            *a = merged;
        } else if (a->bound && a->bound != b->bound) {
            // Two different bounds are none: the table's own end tells then.
            a->bound = 0;
            changed = true;
        }
    }
    for (unsigned i = into->slot_count; i-- > 0;) {
        const struct code_slot *slot = &into->slot[i];
        bool has = false;
        for (unsigned k = 0; k < from->slot_count && !has; k++)
            has = from->slot[k].base == slot->base && from->slot[k].offset == slot->offset &&
                  code_value_same(&from->slot[k].value, &slot->value);
        if (!has) {
            drop_slot(into, i);
            changed = true;
        }
    }
    if (!code_value_same(&into->compared, &from->compared) || into->compared_with != from->compared_with ||
        into->compares_number != from->compares_number) {
        changed |= into->compared.number != 0 || into->compared.kind != CODE_VALUE_UNKNOWN;
        into->compared = (struct code_value){0};
        into->compared_with = 0;
    }
    return changed;
}
