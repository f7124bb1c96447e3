// SPDX-License-Identifier: Apache-2.0
#include "qutc/code/value.h"

void code_state_enter(const struct code_machine *machine, struct code_state *state)
{
    const struct arch *arch = machine->arch;
    memset(state, 0, sizeof *state);
    state->register_count = (uint8_t)arch->register_count;
    for (unsigned i = 0; i < arch->register_count; i++)
        state->reg[i] = (struct code_value){.kind = CODE_VALUE_ENTRY, .of = i};
    if (arch->ra_in_register)
        return;
    state->reg[arch->ra_reg] = code_value_unknown(UINT32_MAX, arch->ra_reg);
    state->slot[state->slot_count++] =
        (struct code_slot){CODE_BASE_ENTRY, 0, {.kind = CODE_VALUE_ENTRY, .of = arch->ra_reg}};
}

// ---- the stack

enum { PLACES_LEFT = 4 }; // in a state, for registers that are saved later than numbers are

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

// Of what a register held at the entry. In other registers it is followed, but not in memory that anybody may write.
static void note_stored(struct code_machine *machine, const struct code_state *state, const struct code_op *op)
{
    if (op->from < CODE_REGISTERS && state->reg[op->from].kind == CODE_VALUE_ENTRY)
        machine->stored |= (uint64_t)1 << state->reg[op->from].of;
}

static void store(struct code_machine *machine, struct code_state *state, const struct code_op *op)
{
    uint32_t which;
    int32_t offset, word = machine->arch->word_bytes;
    note_stored(machine, state, op);
    if (!place_of(machine, &state->reg[op->to], op->number, &which, &offset))
        return;
    for (unsigned i = state->slot_count; i-- > 0;) {
        const struct code_slot *slot = &state->slot[i];
        if (slot->base == which && slot->offset < offset + op->size_bytes && offset < slot->offset + word)
            drop_slot(state, i);
    }
    if (op->from == CODE_REG_NONE || op->size_bytes != word || state->slot_count == CODE_SLOTS_MAX)
        return;
    struct code_value value = state->reg[op->from];
    // Where compilers have no register left, they keep addresses of tables on the stack. Nothing else is made of what
    // is loaded back: of a variable that something writes by its address it need not be true.
    bool is_place = state->slot_count < CODE_SLOTS_MAX - PLACES_LEFT && code_value_is_place(machine, &value);
    if (!is_place && !is_worth_keeping(machine, &value))
        return;
    if (is_place)
        value.kind = CODE_VALUE_PLACE;
    else
        state->version = 0;
    state->slot[state->slot_count++] = (struct code_slot){which, offset, value};
}

static struct code_value load(struct code_machine *machine, const struct code_state *state, const struct code_op *op,
                              uint32_t pc)
{
    struct code_value value;
    if (op->from != CODE_REG_NONE && code_value_of_table(machine, &state->reg[op->from], op, pc, &value))
        return value;
    value = code_value_unknown(pc, op->to);
    value.bound = code_value_range(op);
    if (op->size_bytes != machine->arch->word_bytes)
        return value;
    if (op->from == CODE_REG_NONE) // a number that stands beside the code
        return code_value_indexed(machine, state, op, pc);
    const struct code_slot *slot = code_state_slot(machine, state, &state->reg[op->from], op->number);
    if (!slot)
        return value;
    if (code_value_is_entry(&slot->value, op->to, 0))
        machine->restored[op->to] = *slot;
    return slot->value;
}

static struct code_value result(struct code_machine *machine, const struct code_state *state, const struct code_op *op,
                                uint32_t pc)
{
    struct code_value value = {0};
    switch (op->kind) {
    case CODE_OP_SET:
        if (op->from == CODE_REG_NONE)
            return code_value_constant(op->number);
        value = state->reg[op->from];
        if (op->number == 0)
            return value;
        if (value.kind == CODE_VALUE_ENTRY || value.kind == CODE_VALUE_CONST || value.kind == CODE_VALUE_BASE) {
            value.number = (int64_t)((uint64_t)value.number + (uint64_t)op->number);
            value.bound = value.byte_bound = 0;
            return value;
        }
        if (value.kind == CODE_VALUE_LOADED) {
            value.kind = CODE_VALUE_TARGET;
            value.number = op->number;
            return value;
        }
        return code_value_unknown(pc, op->to);
    case CODE_OP_ADD:
        value = code_value_add(state, op, pc);
        value.is_computed =
            value.kind == CODE_VALUE_UNKNOWN && state->reg[op->from].is_computed && state->reg[op->other].is_computed;
        return value;
    case CODE_OP_AND: return code_value_and(state, op, pc);
    case CODE_OP_OR: return code_value_or(state, op, pc);
    case CODE_OP_SHIFT:
        value = code_value_shift(state, op, pc);
        value.is_computed = value.kind == CODE_VALUE_UNKNOWN;
        return value;
    case CODE_OP_INSERT: return code_value_insert(state, op, pc);
    case CODE_OP_EXTEND:
        value = code_value_extend(machine, state, op, pc);
        value.is_computed = value.kind == CODE_VALUE_UNKNOWN && state->reg[op->from].is_computed;
        return value;
    case CODE_OP_LOAD: return load(machine, state, op, pc);
    case CODE_OP_INDEXED: return code_value_indexed(machine, state, op, pc);
    case CODE_OP_SIGN:
    case CODE_OP_AUTH:
        value = state->reg[op->to];
        value.is_signed = op->kind == CODE_OP_SIGN;
        value.key_b = value.is_signed && op->number;
        return value;
    case CODE_OP_COMPUTE:
        value = code_value_unknown(pc, op->to);
        value.is_computed = op->from == CODE_REG_NONE || state->reg[op->from].is_computed;
        return value;
    default: return code_value_unknown(pc, op->to);
    }
}

// What was said in terms of an sp that is set anew is of an earlier one.
static void forget_base(struct code_state *state, uint32_t base)
{
    for (unsigned i = 0; i < CODE_REGISTERS; i = code_state_next(state, i))
        if (state->reg[i].kind == CODE_VALUE_BASE && state->reg[i].of == base)
            state->reg[i] = code_value_unknown(base, i);
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

static void note_written(struct code_machine *machine, const struct code_op *op, const struct code_value *value)
{
    uint64_t reg = (uint64_t)1 << op->to & machine->code->kept;
    bool is_its_own = value->kind == CODE_VALUE_ENTRY && value->of == op->to;
    if (value->is_computed || (is_telling(value) && !is_its_own))
        machine->overwritten |= reg;
    if (op->kind != CODE_OP_SET || op->from != op->to)
        machine->written |= reg;
    else if (op->number > 0)
        machine->raised |= reg;
    else if (op->number < 0)
        machine->lowered |= reg;
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
        if (op->kind == CODE_OP_SET && op->to == CODE_REG_SCRATCH)
            note_stored(machine, state, op);
        struct code_value value = result(machine, state, op, pc);
        if (value.kind == CODE_VALUE_CONST && machine->arch->word_bytes == 4)
            value.number = (int32_t)value.number; // of two words that mean the same, one
        if (op->to == machine->arch->sp_reg && value.kind != CODE_VALUE_ENTRY && value.kind != CODE_VALUE_BASE) {
            forget_base(state, pc);
            value = (struct code_value){.kind = CODE_VALUE_BASE, .of = pc};
        }
        note_written(machine, op, &value);
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
            state->reg[i] = code_value_unknown(pc, i);
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

// Whether ways that met at pc have made it what they make it. It is compared as it lies in memory, since what is made
// up beside it, byte by byte, would be waited for.
static bool is_merged(const struct code_value *value, bool is_sp, unsigned reg, uint32_t pc)
{
    bool is_plain = !value->is_signed && !value->shift && !value->is_odd && !value->bound && !value->byte_bound;
    if (is_sp)
        return is_plain && value->kind == CODE_VALUE_BASE && value->of == pc && value->number == 0;
    return is_plain && value->kind == CODE_VALUE_UNKNOWN && value->of == (reg | 0x100) &&
           value->number == (int64_t)pc + 1;
}

// True where `a` changed.
static bool merge_register(struct code_value *a, const struct code_value *b, unsigned reg, unsigned sp_reg, uint32_t pc)
{
    if (code_value_same(a, b)) {
        // Two different bounds are none: the table's own end tells then.
        bool differs = a->bound && a->bound != b->bound, byte_differs = a->byte_bound && a->byte_bound != b->byte_bound;
        a->bound = differs ? 0 : a->bound;
        a->byte_bound = byte_differs ? 0 : a->byte_bound;
        return differs || byte_differs;
    }
    if (is_merged(a, reg == sp_reg, reg, pc))
        return false;
    // Calls leave of the stack what is above sp: a place that has a name.
    *a = reg == sp_reg ? (struct code_value){.kind = CODE_VALUE_BASE, .of = pc} : code_value_unknown(pc, reg | 0x100);
    return true;
}

// Following merges states more often than anything else, and most of what it merges is the same.
bool code_state_merge(struct code_state *into, const struct code_state *from, unsigned sp_reg, uint32_t pc)
{
    bool changed = false;
    for (unsigned i = 0; i < CODE_REGISTERS; i = code_state_next(into, i))
        if (memcmp(&into->reg[i], &from->reg[i], sizeof into->reg[i]) != 0)
            changed |= merge_register(&into->reg[i], &from->reg[i], i, sp_reg, pc);
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
        into->compares_number != from->compares_number || into->compared_bytes != from->compared_bytes) {
        changed |= into->compared.number != 0 || into->compared.kind != CODE_VALUE_UNKNOWN;
        into->compared = (struct code_value){0};
        into->compared_with = 0;
    }
    return changed;
}
