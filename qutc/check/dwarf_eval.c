// SPDX-License-Identifier: Apache-2.0
#include "qutc/check/dwarf_eval.h"

#include <dwarf.h>

bool check_dwarf_decode(struct base_bytes expression, unsigned word_bytes, struct check_dwarf_op *ops,
                        unsigned capacity, unsigned *count)
{
    struct base_cursor c = base_cursor(expression);
    *count = 0;
    while (base_cursor_left(&c)) {
        if (*count == capacity)
            return false;
        struct check_dwarf_op op = {.offset = base_cursor_offset(&c), .atom = base_read_u8(&c)};
        switch (op.atom) {
        case DW_OP_addr: op.number = base_read_uint(&c, word_bytes); break;
        case DW_OP_const1u:
        case DW_OP_pick:
        case DW_OP_deref_size: op.number = base_read_u8(&c); break;
        case DW_OP_const1s: op.number = (uint64_t)(int8_t)base_read_u8(&c); break;
        case DW_OP_const2u: op.number = base_read_u16(&c); break;
        case DW_OP_const2s:
        case DW_OP_bra:
        case DW_OP_skip: op.number = (uint64_t)(int16_t)base_read_u16(&c); break;
        case DW_OP_const4u: op.number = base_read_u32(&c); break;
        case DW_OP_const4s: op.number = (uint64_t)(int32_t)base_read_u32(&c); break;
        case DW_OP_const8u:
        case DW_OP_const8s: op.number = base_read_u64(&c); break;
        case DW_OP_constu:
        case DW_OP_plus_uconst:
        case DW_OP_regx: op.number = base_read_uleb(&c); break;
        case DW_OP_consts:
        case DW_OP_breg0 ... DW_OP_breg31: op.number = (uint64_t)base_read_sleb(&c); break;
        case DW_OP_bregx:
            op.number = base_read_uleb(&c);
            op.number2 = (uint64_t)base_read_sleb(&c);
            break;
        case DW_OP_lit0 ... DW_OP_lit31:
        case DW_OP_reg0 ... DW_OP_reg31:
        case DW_OP_dup:
        case DW_OP_drop:
        case DW_OP_over:
        case DW_OP_swap:
        case DW_OP_rot:
        case DW_OP_deref:
        case DW_OP_abs:
        case DW_OP_and:
        case DW_OP_div:
        case DW_OP_minus:
        case DW_OP_mod:
        case DW_OP_mul:
        case DW_OP_neg:
        case DW_OP_not:
        case DW_OP_or:
        case DW_OP_plus:
        case DW_OP_shl:
        case DW_OP_shr:
        case DW_OP_shra:
        case DW_OP_xor:
        case DW_OP_eq:
        case DW_OP_ge:
        case DW_OP_gt:
        case DW_OP_le:
        case DW_OP_lt:
        case DW_OP_ne:
        case DW_OP_nop:
        case DW_OP_call_frame_cfa:
        case DW_OP_stack_value: break;
        default: return false;
        }
        if (!base_cursor_is_sound(&c))
            return false;
        ops[(*count)++] = op;
    }
    return true;
}

struct run {
    const struct check_dwarf_machine *machine;
    uint64_t word_mask;
    uint64_t stack[CHECK_DWARF_STACK_MAX];
    unsigned depth;
    enum check_dwarf_result fault; // VALUE while there is none
};

static uint64_t fault(struct run *run, enum check_dwarf_result what)
{
    if (run->fault == CHECK_DWARF_VALUE)
        run->fault = what;
    return 0;
}

static void push(struct run *run, uint64_t value)
{
    if (run->depth == CHECK_DWARF_STACK_MAX)
        fault(run, CHECK_DWARF_BAD_PROGRAM);
    else
        run->stack[run->depth++] = value & run->word_mask;
}

static uint64_t pop(struct run *run)
{
    return run->depth ? run->stack[--run->depth] : fault(run, CHECK_DWARF_BAD_PROGRAM);
}

// The entry `below` places under the top.
static uint64_t peek(struct run *run, uint64_t below)
{
    return below < run->depth ? run->stack[run->depth - 1 - below] : fault(run, CHECK_DWARF_BAD_PROGRAM);
}

static int64_t as_signed(const struct run *run, uint64_t value)
{
    return run->machine->word_bytes == 8 ? (int64_t)value : (int32_t)value;
}

static uint64_t register_value(struct run *run, uint64_t reg)
{
    const struct arch_frame_regs *frame = run->machine->frame;
    if (reg >= ARCH_REGISTERS_MAX && reg == run->machine->vector_bytes_reg)
        return frame->vector_bytes ? frame->vector_bytes : fault(run, CHECK_DWARF_NO_REGISTER);
    if (reg >= ARCH_REGISTERS_MAX || !(frame->valid >> reg & 1))
        return fault(run, CHECK_DWARF_NO_REGISTER);
    return frame->reg[reg] & run->word_mask;
}

static uint64_t load(struct run *run, uint64_t address, uint64_t size_bytes)
{
    uint64_t word = 0;
    if (size_bytes == 0 || size_bytes > run->machine->word_bytes)
        return fault(run, CHECK_DWARF_BAD_PROGRAM);
    if (!run->machine->read(run->machine->context, address, &word))
        return fault(run, CHECK_DWARF_BAD_MEMORY);
    return size_bytes == 8 ? word : word & (((uint64_t)1 << 8 * size_bytes) - 1);
}

static void binary(struct run *run, uint8_t atom)
{
    uint64_t top = pop(run);
    uint64_t below = pop(run);
    int64_t stop = as_signed(run, top);
    int64_t sbelow = as_signed(run, below);
    unsigned bits = run->machine->word_bytes * 8;
    switch (atom) {
    case DW_OP_and: push(run, below & top); break;
    case DW_OP_or: push(run, below | top); break;
    case DW_OP_xor: push(run, below ^ top); break;
    case DW_OP_plus: push(run, below + top); break;
    case DW_OP_minus: push(run, below - top); break;
    case DW_OP_mul: push(run, below * top); break;
    case DW_OP_div: // signed; the one overflowing quotient wraps to itself
        push(run, stop == 0 ? fault(run, CHECK_DWARF_BAD_PROGRAM) : stop == -1 ? -below : (uint64_t)(sbelow / stop));
        break;
    case DW_OP_mod: push(run, top == 0 ? fault(run, CHECK_DWARF_BAD_PROGRAM) : below % top); break;
    case DW_OP_shl: push(run, top >= bits ? 0 : below << top); break;
    case DW_OP_shr: push(run, top >= bits ? 0 : below >> top); break;
    case DW_OP_shra: push(run, (uint64_t)(sbelow >> (top >= bits ? bits - 1 : top))); break;
    case DW_OP_eq: push(run, sbelow == stop); break;
    case DW_OP_ne: push(run, sbelow != stop); break;
    case DW_OP_ge: push(run, sbelow >= stop); break;
    case DW_OP_gt: push(run, sbelow > stop); break;
    case DW_OP_le: push(run, sbelow <= stop); break;
    case DW_OP_lt: push(run, sbelow < stop); break;
    default: fault(run, CHECK_DWARF_UNKNOWN_OP);
    }
}

static void rearrange(struct run *run, const struct check_dwarf_op *op)
{
    uint64_t first, second, third;
    switch (op->atom) {
    case DW_OP_dup: push(run, peek(run, 0)); break;
    case DW_OP_over: push(run, peek(run, 1)); break;
    case DW_OP_pick: push(run, peek(run, op->number)); break;
    case DW_OP_drop: pop(run); break;
    case DW_OP_swap:
        first = pop(run);
        second = pop(run);
        push(run, first);
        push(run, second);
        break;
    default: // rot: the top goes below the next two
        first = pop(run);
        second = pop(run);
        third = pop(run);
        push(run, first);
        push(run, third);
        push(run, second);
        break;
    }
}

static void step(struct run *run, const struct check_dwarf_op *op)
{
    uint64_t value;
    switch (op->atom) {
    case DW_OP_lit0 ... DW_OP_lit31: push(run, op->atom - DW_OP_lit0); break;
    case DW_OP_addr:
    case DW_OP_const1u:
    case DW_OP_const1s:
    case DW_OP_const2u:
    case DW_OP_const2s:
    case DW_OP_const4u:
    case DW_OP_const4s:
    case DW_OP_const8u:
    case DW_OP_const8s:
    case DW_OP_constu:
    case DW_OP_consts: push(run, op->number); break;
    case DW_OP_breg0 ... DW_OP_breg31: push(run, register_value(run, op->atom - DW_OP_breg0) + op->number); break;
    case DW_OP_bregx: push(run, register_value(run, op->number) + op->number2); break;
    case DW_OP_call_frame_cfa:
        push(run, run->machine->has_cfa ? run->machine->cfa : fault(run, CHECK_DWARF_BAD_PROGRAM));
        break;
    case DW_OP_plus_uconst: push(run, pop(run) + op->number); break;
    case DW_OP_neg: push(run, -pop(run)); break;
    case DW_OP_not: push(run, ~pop(run)); break;
    case DW_OP_abs:
        value = pop(run);
        push(run, as_signed(run, value) < 0 ? -value : value);
        break;
    case DW_OP_deref: push(run, load(run, pop(run), run->machine->word_bytes)); break;
    case DW_OP_deref_size: push(run, load(run, pop(run), op->number)); break;
    case DW_OP_dup:
    case DW_OP_over:
    case DW_OP_pick:
    case DW_OP_drop:
    case DW_OP_swap:
    case DW_OP_rot: rearrange(run, op); break;
    case DW_OP_nop: break;
    default: binary(run, op->atom);
    }
}

// The index of the operation at an offset; `count` for the expression's end, which is any offset behind the last
// operation's first byte. -1 where an offset lies inside an operation. Searched from the end: operations that a reader
// put in front (the CFA) have no offset of their own.
static int64_t branch_target(const struct check_dwarf_op *ops, unsigned count, uint64_t offset)
{
    for (unsigned i = count; i-- > 0;)
        if (ops[i].offset == offset && ops[i].atom != DW_OP_call_frame_cfa)
            return i;
    return (int64_t)offset > (int64_t)ops[count - 1].offset ? (int64_t)count : -1;
}

enum check_dwarf_result check_dwarf_run(const struct check_dwarf_machine *machine, const struct check_dwarf_op *ops,
                                        unsigned count, uint64_t *value)
{
    struct run run = {.machine = machine,
                      .word_mask = machine->word_bytes == 8 ? UINT64_MAX : UINT32_MAX,
                      .depth = 0,
                      .fault = CHECK_DWARF_VALUE};
    unsigned steps = 0;
    for (unsigned i = 0; i < count;) {
        const struct check_dwarf_op *op = &ops[i++];
        if (++steps > CHECK_DWARF_STEPS_MAX)
            return CHECK_DWARF_BAD_PROGRAM;
        if (op->atom == DW_OP_stack_value || op->atom == DW_OP_regx ||
            (op->atom >= DW_OP_reg0 && op->atom <= DW_OP_reg31)) {
            if (i != count)
                return CHECK_DWARF_BAD_PROGRAM;
            *value = op->atom == DW_OP_stack_value ? pop(&run)
                     : op->atom == DW_OP_regx      ? register_value(&run, op->number)
                                                   : register_value(&run, op->atom - DW_OP_reg0);
            return run.fault;
        }
        if (op->atom == DW_OP_skip || (op->atom == DW_OP_bra && pop(&run) != 0)) {
            int64_t target = branch_target(ops, count, op->offset + 3 + (uint64_t)(int16_t)op->number);
            if (target < 0)
                return CHECK_DWARF_BAD_PROGRAM;
            i = (unsigned)target;
        } else if (op->atom != DW_OP_bra) {
            step(&run, op);
        }
        if (run.fault != CHECK_DWARF_VALUE)
            return run.fault;
    }
    *value = pop(&run);
    return run.fault != CHECK_DWARF_VALUE ? run.fault : CHECK_DWARF_ADDRESS;
}
