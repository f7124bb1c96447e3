// SPDX-License-Identifier: Apache-2.0
// What instructions of one byte of opcode do.
#include "qutc/code/x86/inside.h"

static bool is_word(const struct code_x86 *x, unsigned bytes)
{
    return bytes == code_x86_word(x);
}

static void push(const struct code_x86 *x, struct code_instruction *in, unsigned number)
{
    unsigned bytes = x->half_operand ? 2 : code_x86_word(x), sp = code_x86_dwarf(x, SP);
    unsigned from = number == NO_NUMBER || x->half_operand ? CODE_REG_NONE : code_x86_dwarf(x, number);
    if (number == SP) { // what it was before
        code_set(in, CODE_REG_SCRATCH, sp, 0);
        from = CODE_REG_SCRATCH;
    }
    code_set(in, sp, sp, -(int64_t)bytes);
    code_store(in, sp, 0, from, bytes);
}

static void pop(const struct code_x86 *x, struct code_instruction *in, unsigned number)
{
    unsigned bytes = x->half_operand ? 2 : code_x86_word(x), sp = code_x86_dwarf(x, SP);
    unsigned to = number == NO_NUMBER ? CODE_REG_SCRATCH : code_x86_dwarf(x, number);
    code_load(in, to == sp ? CODE_REG_SCRATCH : to, sp, 0, bytes);
    code_set(in, sp, sp, bytes);
    if (to == sp)
        code_set(in, sp, CODE_REG_SCRATCH, 0);
    else if (x->half_operand)
        code_lose(in, to);
}

static void move_registers(const struct code_x86 *x, struct code_instruction *in, unsigned to, unsigned from,
                           unsigned bytes)
{
    if (is_word(x, bytes)) {
        code_set(in, code_x86_dwarf(x, to), code_x86_dwarf(x, from), 0);
    } else if (bytes == 4) {
        code_add(in, CODE_OP_EXTEND, code_x86_dwarf(x, to), code_x86_dwarf(x, from))->size_bytes = 4;
    } else {
        code_x86_lose_sized(x, in, to, bytes);
    }
}

static void move(const struct code_x86 *x, uint64_t vaddr, struct code_instruction *in)
{
    unsigned bytes = x->opcode & 1 ? code_x86_operand_bytes(x) : 1;
    bool to_rm = !(x->opcode & 2);
    if (x->mode == 3)
        move_registers(x, in, to_rm ? x->low : x->reg, to_rm ? x->reg : x->low, bytes);
    else if (to_rm)
        code_x86_store(x, in, is_word(x, bytes) ? x->reg : NO_NUMBER, bytes);
    else if (bytes >= 4)
        code_x86_load(x, vaddr, in, code_x86_dwarf(x, x->reg), bytes, false);
    else
        code_x86_lose_sized(x, in, x->reg, bytes);
}

static void move_number(const struct code_x86 *x, struct code_instruction *in, unsigned number, unsigned bytes)
{
    if (bytes < 4)
        code_x86_lose_sized(x, in, number, bytes);
    else
        code_set(in, code_x86_dwarf(x, number), CODE_REG_NONE, bytes == 4 ? (int64_t)(uint32_t)x->number : x->number);
}

static void load_address(const struct code_x86 *x, uint64_t vaddr, struct code_instruction *in)
{
    unsigned to = code_x86_dwarf(x, x->reg);
    bool has_base = x->base != NO_NUMBER, has_index = x->index != NO_NUMBER;
    if (x->mode == 3 || x->other_address || !is_word(x, code_x86_operand_bytes(x)) || (!has_base && has_index)) {
        code_lose(in, to);
    } else if (!has_base) {
        int64_t number = x->is_64 ? x->displacement : (int64_t)(uint32_t)x->displacement;
        code_set(in, to, CODE_REG_NONE, x->by_pc ? number + (int64_t)(vaddr + x->size_bytes) : number);
    } else if (!has_index) {
        code_set(in, to, code_x86_dwarf(x, x->base), x->displacement);
    } else {
        struct code_op *op = code_add(in, CODE_OP_ADD, to, code_x86_dwarf(x, x->base));
        op->other = (uint8_t)code_x86_dwarf(x, x->index);
        op->shift = x->scale;
        op->number = x->displacement;
    }
}

enum operation { ADD, OR, ADC, SBB, AND, SUB, XOR, CMP };

static void compare_number(const struct code_x86 *x, struct code_instruction *in, unsigned number, unsigned bytes)
{
    if (bytes == 1 && !x->has_rex && number >= 4 && number < 8)
        return;
    struct code_op *op = code_add(in, CODE_OP_COMPARE, CODE_REG_NONE, code_x86_dwarf(x, number));
    op->size_bytes = (uint8_t)bytes;
    op->number = bytes == 8 ? x->number : x->number & (((int64_t)1 << 8 * bytes) - 1);
}

static void compute_with_number(const struct code_x86 *x, struct code_instruction *in, unsigned operation,
                                unsigned number, unsigned bytes)
{
    unsigned reg = code_x86_dwarf(x, number);
    if (operation == CMP)
        compare_number(x, in, number, bytes);
    else if ((operation == ADD || operation == SUB) && is_word(x, bytes))
        code_set(in, reg, reg, operation == ADD ? x->number : -x->number);
    else if (operation == AND && bytes >= 4)
        code_add(in, CODE_OP_AND, reg, reg)->number = is_word(x, bytes) ? x->number : (uint32_t)x->number;
    else
        code_x86_lose_sized(x, in, number, bytes);
}

static void compute_registers(const struct code_x86 *x, struct code_instruction *in, unsigned operation, unsigned to,
                              unsigned from, unsigned bytes)
{
    unsigned reg = code_x86_dwarf(x, to);
    if (operation == CMP)
        return;
    if (operation == XOR && to == from && bytes >= 4)
        code_set(in, reg, CODE_REG_NONE, 0);
    else if ((operation == ADD || operation == SUB) && is_word(x, bytes)) {
        struct code_op *op = code_add(in, CODE_OP_ADD, reg, reg);
        op->other = (uint8_t)code_x86_dwarf(x, from);
        op->negative = operation == SUB;
    } else {
        code_x86_lose_sized(x, in, to, bytes);
    }
}

// 00 ... 3d, and the group of 80 ... 83.
static void compute(const struct code_x86 *x, struct code_instruction *in)
{
    bool is_group = x->opcode >= 0x80;
    unsigned operation = is_group ? x->reg & 7 : x->opcode >> 3 & 7;
    unsigned bytes = x->opcode & 1 ? code_x86_operand_bytes(x) : 1;
    if (!is_group && (x->opcode & 7) >= 4) {
        compute_with_number(x, in, operation, AX, bytes);
    } else if (is_group && x->mode == 3) {
        compute_with_number(x, in, operation, x->low, bytes);
    } else if (!is_group && (x->opcode & 2)) {
        if (x->mode == 3)
            compute_registers(x, in, operation, x->reg, x->low, bytes);
        else if (operation != CMP)
            code_x86_lose_sized(x, in, x->reg, bytes);
    } else if (x->mode == 3) {
        compute_registers(x, in, operation, x->low, x->reg, bytes);
    } else if (operation != CMP) {
        code_x86_store(x, in, NO_NUMBER, bytes);
    }
}

static void exchange(const struct code_x86 *x, struct code_instruction *in, unsigned a, unsigned b, unsigned bytes)
{
    if (a == b && bytes != 4)
        return;
    if (!is_word(x, bytes)) {
        code_x86_lose_sized(x, in, a, bytes);
        code_x86_lose_sized(x, in, b, bytes);
        return;
    }
    code_set(in, CODE_REG_SCRATCH, code_x86_dwarf(x, a), 0);
    code_set(in, code_x86_dwarf(x, a), code_x86_dwarf(x, b), 0);
    code_set(in, code_x86_dwarf(x, b), CODE_REG_SCRATCH, 0);
}

static void go_through(const struct code_x86 *x, uint64_t vaddr, struct code_instruction *in, unsigned flow)
{
    in->flow = (uint8_t)flow;
    in->through = CODE_REG_SCRATCH;
    if (x->mode == 3)
        in->through = (uint8_t)code_x86_dwarf(x, x->low);
    else
        code_x86_load(x, vaddr, in, CODE_REG_SCRATCH, code_x86_word(x), false);
}

static void call(const struct code_x86 *x, uint64_t vaddr, struct code_instruction *in)
{
    code_x86_go_to(x, vaddr, in, CODE_CALL);
    if (x->number != 0)
        return;
    // A call of the next instruction pushes its own address.
    in->flow = CODE_NEXT;
    push(x, in, NO_NUMBER);
}

static void go_back(const struct code_x86 *x, struct code_instruction *in)
{
    unsigned sp = code_x86_dwarf(x, SP), word = code_x86_word(x);
    in->flow = CODE_RETURN;
    in->through = CODE_REG_SCRATCH;
    code_load(in, CODE_REG_SCRATCH, sp, 0, word);
    code_set(in, sp, sp, (int64_t)word + (x->opcode == 0xc2 ? x->number & UINT16_MAX : 0));
}

static void leave(const struct code_x86 *x, struct code_instruction *in)
{
    unsigned sp = code_x86_dwarf(x, SP), bp = code_x86_dwarf(x, BP), word = code_x86_word(x);
    code_set(in, sp, bp, 0);
    code_load(in, bp, sp, 0, word);
    code_set(in, sp, sp, word);
}

static bool group_ff(const struct code_x86 *x, uint64_t vaddr, struct code_instruction *in)
{
    unsigned bytes = code_x86_operand_bytes(x), low = code_x86_dwarf(x, x->low);
    switch (x->reg & 7) {
    case 0:
    case 1:
        if (x->mode == 3 && is_word(x, bytes))
            code_set(in, low, low, x->reg & 1 ? -1 : 1);
        else
            code_x86_write_rm(x, in, bytes);
        return true;
    case 2: go_through(x, vaddr, in, CODE_CALL); return true;
    case 4: go_through(x, vaddr, in, CODE_JUMP); return true;
    case 6: push(x, in, x->mode == 3 ? x->low : NO_NUMBER); return true;
    default: return false; // far
    }
}

static void strings(const struct code_x86 *x, struct code_instruction *in)
{
    switch (x->opcode & ~1u) {
    case 0x6c: // ins, stos, scas
    case 0xaa:
    case 0xae: code_x86_lose(x, in, DI); break;
    case 0x6e: code_x86_lose(x, in, SI); break; // outs
    case 0xac:
        code_x86_lose(x, in, SI);
        code_x86_lose(x, in, AX);
        break;
    default:
        code_x86_lose(x, in, SI);
        code_x86_lose(x, in, DI);
        break;
    }
    if (x->repeat)
        code_x86_lose(x, in, CX);
}

static void lose_pair(const struct code_x86 *x, struct code_instruction *in)
{
    code_x86_lose(x, in, AX);
    code_x86_lose(x, in, DX);
}

// What is stored has so many bytes; fnstsw ax.
static void judge_x87(const struct code_x86 *x, struct code_instruction *in)
{
    static const uint8_t stored[4][8] = {
        {0, 0, 4, 4, 0, 0, 28, 2}, {0, 4, 4, 4, 0, 0, 0, 10}, {0, 8, 8, 8, 0, 0, 108, 2}, {0, 2, 2, 2, 0, 0, 10, 8}};
    if (x->opcode == 0xdf && x->mode == 3)
        code_x86_lose(x, in, AX);
    else if (x->mode != 3 && (x->opcode & 1))
        code_x86_store(x, in, NO_NUMBER, stored[x->opcode >> 1 & 3][x->reg & 7]);
}

static bool judge_high(const struct code_x86 *x, uint64_t vaddr, struct code_instruction *in)
{
    unsigned bytes = x->opcode & 1 ? code_x86_operand_bytes(x) : 1,
             number = (x->opcode & 7u) | ((unsigned)x->rex << 3 & 8u);
    switch (x->opcode) {
    case 0xb0 ... 0xb7: // numbers of system calls are written so
        if (number >= 4 && number < 8 && !x->has_rex) {
            code_x86_lose_sized(x, in, number, 1);
        } else {
            struct code_op *op = code_add(in, CODE_OP_INSERT, code_x86_dwarf(x, number), CODE_REG_NONE);
            op->size_bytes = 1;
            op->number = x->number & UINT8_MAX;
        }
        return true;
    case 0xb8 ... 0xbf: move_number(x, in, number, code_x86_operand_bytes(x)); return true;
    case 0xc0 ... 0xc1:
    case 0xd0 ... 0xd3:
        if (bytes == 8 && x->opcode == 0xc1 && x->mode == 3 && (x->reg & 7) == 4) {
            unsigned reg = code_x86_dwarf(x, x->low);
            code_add(in, CODE_OP_SHIFT, reg, reg)->shift = (uint8_t)(x->number & 63);
        } else {
            code_x86_write_rm(x, in, bytes);
        }
        return true;
    case 0xc2 ... 0xc3: go_back(x, in); return true;
    case 0xc4 ... 0xc5: code_x86_lose(x, in, x->reg); return true;
    case 0xc6:
    case 0xc7:
        if ((x->reg & 7) == 7 && x->opcode == 0xc7) { // xbegin
            code_x86_go_to(x, vaddr, in, CODE_BRANCH);
            code_x86_lose(x, in, AX);
        } else if (x->mode == 3) {
            move_number(x, in, x->low, bytes);
        } else {
            code_x86_store(x, in, NO_NUMBER, bytes);
        }
        return true;
    case 0xc9: leave(x, in); return !x->half_operand;
    case 0xc8:          // enter: nested ones are none of compilers'
    case 0xca ... 0xcb: // far
    case 0xce ... 0xcf: return false;
    case 0xcc:
        in->flow = CODE_STOP;
        in->is_padding = true;
        return true;
    case 0xcd:
        in->flow = x->number == -128 ? CODE_SYSTEM : CODE_STOP; // int 0x80; others are traps
        code_x86_lose(x, in, AX);
        return true;
    case 0xd4 ... 0xd7: code_x86_lose(x, in, AX); return true;
    case 0xd8 ... 0xdf: judge_x87(x, in); return true;
    case 0xe0 ... 0xe3:
        code_x86_go_if(x, vaddr, in, 0);
        if (x->opcode != 0xe3)
            code_x86_lose(x, in, CX);
        return true;
    case 0xe4 ... 0xe5:
    case 0xec ... 0xed: code_x86_lose(x, in, AX); return true;
    case 0xe8: call(x, vaddr, in); return true;
    case 0xe9:
    case 0xeb: code_x86_go_to(x, vaddr, in, CODE_JUMP); return true;
    case 0xea: return false;
    case 0xf4: in->flow = CODE_STOP; return true;
    case 0xf1: in->flow = CODE_STOP; return true;
    case 0xf6:
    case 0xf7:
        if ((x->reg & 7) >= 4)
            lose_pair(x, in);
        else if ((x->reg & 7) >= 2)
            code_x86_write_rm(x, in, bytes);
        return true;
    case 0xfe: code_x86_write_rm(x, in, 1); return (x->reg & 7) < 2;
    case 0xff: return group_ff(x, vaddr, in);
    default: return true;
    }
}

// Segment registers of 32-bit code, pusha and the like: written by nobody that is followed.
static bool judge_old(const struct code_x86 *x, struct code_instruction *in)
{
    if (x->opcode == 0x60 || x->opcode == 0x61)
        return false;
    if ((x->opcode & 7) == 6)
        push(x, in, NO_NUMBER);
    else if (x->opcode >= 0x27)
        code_x86_lose(x, in, AX);
    else
        pop(x, in, NO_NUMBER);
    return true;
}

static bool judge_low(const struct code_x86 *x, uint64_t vaddr, struct code_instruction *in)
{
    unsigned bytes = x->opcode & 1 ? code_x86_operand_bytes(x) : 1,
             number = (x->opcode & 7u) | ((unsigned)x->rex << 3 & 8u);
    if (x->opcode < 0x40 && (x->opcode & 7) < 6) {
        compute(x, in);
        return true;
    }
    switch (x->opcode) {
    case 0x00 ... 0x3f:
    case 0x60 ... 0x61: return judge_old(x, in);
    case 0x40 ... 0x4f:
        if (is_word(x, code_x86_operand_bytes(x)))
            code_set(in, number & 7, number & 7, x->opcode & 8 ? -1 : 1);
        else
            code_lose(in, number & 7);
        return true;
    case 0x50 ... 0x57: push(x, in, number); return true;
    case 0x58 ... 0x5f: pop(x, in, number); return true;
    case 0x62: return true; // bound
    case 0x63:
        if (!x->is_64) // arpl
            code_x86_write_rm(x, in, 2);
        else if (bytes != 8)
            code_x86_lose(x, in, x->reg);
        else if (x->mode != 3)
            code_x86_load(x, vaddr, in, code_x86_dwarf(x, x->reg), 4, true);
        else {
            struct code_op *op = code_add(in, CODE_OP_EXTEND, code_x86_dwarf(x, x->reg), code_x86_dwarf(x, x->low));
            op->size_bytes = 4;
            op->negative = true;
        }
        return true;
    case 0x68:
    case 0x6a: push(x, in, NO_NUMBER); return true;
    case 0x69:
    case 0x6b: code_x86_lose(x, in, x->reg); return true;
    case 0x6c ... 0x6f:
    case 0xa4 ... 0xa7:
    case 0xaa ... 0xaf: strings(x, in); return true;
    case 0x70 ... 0x7f: code_x86_go_if(x, vaddr, in, x->opcode & 15); return true;
    case 0x80 ... 0x83: compute(x, in); return true;
    case 0x84 ... 0x85: return true;
    case 0x86 ... 0x87:
        if (x->mode == 3) {
            exchange(x, in, x->low, x->reg, bytes);
        } else {
            code_x86_lose_sized(x, in, x->reg, bytes);
            code_x86_store(x, in, NO_NUMBER, bytes);
        }
        return true;
    case 0x88 ... 0x8b: move(x, vaddr, in); return true;
    case 0x8c: code_x86_write_rm(x, in, x->mode == 3 ? code_x86_operand_bytes(x) : 2); return true;
    case 0x8d: load_address(x, vaddr, in); return true;
    case 0x8e: return true;
    case 0x8f: pop(x, in, x->mode == 3 ? x->low : NO_NUMBER); return true;
    case 0x90 ... 0x97: exchange(x, in, AX, number, number == AX ? 8 : code_x86_operand_bytes(x)); return true;
    case 0x98: code_x86_lose(x, in, AX); return true;
    case 0x99: code_x86_lose(x, in, DX); return true;
    case 0x9a: return false;
    case 0x9c: push(x, in, NO_NUMBER); return true;
    case 0x9d: pop(x, in, NO_NUMBER); return true;
    case 0x9f:
    case 0xa0 ... 0xa1: code_x86_lose(x, in, AX); return true;
    default: return true;
    }
}

bool code_x86_judge_one_byte(const struct code_x86 *x, uint64_t vaddr, struct code_instruction *in)
{
    return x->opcode < 0xb0 ? judge_low(x, vaddr, in) : judge_high(x, vaddr, in);
}
