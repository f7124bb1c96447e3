// SPDX-License-Identifier: Apache-2.0
// Instructions of x86-64 that most code is made of, without Zydis, which takes two thirds of the time of a plan where
// it reads them all. What has a prefix but REX, or might be refused for one of its operands, is not for here. A test
// compares both.
#include "qutc/code/x86/apart.h"
#include "tracer/calls/inside.h"

// What is known of an opcode.
enum {
    NOT_COMMON = 0,
    COMMON,   // one that goes on behind itself
    COMMON_4, // the same; the number in it has 4 bytes
    JUMP_1,   // a distance of one byte
    JUMP_4,
    CALL_4,
    CONDITION_1,
    CONDITION_4,
    STOPS,
    GROUP, // ModRM says
};

static unsigned kind_of_one_byte(unsigned op)
{
    if (op < 0x40)
        return (op & 7) < 4 ? COMMON : (op & 7) == 4 ? COMMON : (op & 7) == 5 ? COMMON_4 : NOT_COMMON;
    if (op >= 0x50 && op < 0x60)
        return COMMON; // push, pop
    if (op >= 0x70 && op < 0x80)
        return CONDITION_1;
    if (op >= 0xb0 && op < 0xc0)
        return op < 0xb8 ? COMMON : COMMON_4; // mov
    switch (op) {
    case 0x63: // movsxd
    case 0x6a:
    case 0x6b: // push, imul by a byte
    case 0x80:
    case 0x83:
    case 0x84:
    case 0x85:
    case 0x86:
    case 0x87:
    case 0x88:
    case 0x89:
    case 0x8a:
    case 0x8b:
    case 0x98:
    case 0x99:
    case 0xa8:
    case 0xc9: return COMMON;
    case 0x68:
    case 0x69:
    case 0x81:
    case 0xa9: return COMMON_4;
    case 0xc3:
    case 0xcc: return STOPS;
    case 0xe8: return CALL_4;
    case 0xe9: return JUMP_4;
    case 0xeb: return JUMP_1;
    case 0x8d: // lea
    case 0xc0:
    case 0xc1:
    case 0xc6:
    case 0xc7:
    case 0xd0:
    case 0xd1:
    case 0xd2:
    case 0xd3:
    case 0xf6:
    case 0xf7:
    case 0xfe:
    case 0xff: return GROUP;
    default: return NOT_COMMON;
    }
}

static unsigned kind_of_0f(unsigned op)
{
    if (op >= 0x80 && op < 0x90)
        return CONDITION_4;
    if ((op >= 0x40 && op < 0x50) || (op >= 0x90 && op < 0xa0))
        return COMMON; // cmov, set
    switch (op) {
    case 0x10: // movups, movaps
    case 0x11:
    case 0x28:
    case 0x29:
    case 0x54: // of vectors of floats
    case 0x57:
    case 0x58:
    case 0x59:
    case 0x5c:
    case 0x5e:
    case 0xaf: // imul, movzx, movsx
    case 0xb6:
    case 0xb7:
    case 0xbe:
    case 0xbf: return COMMON;
    case 0x0b: return STOPS; // ud2
    case 0x1f: return GROUP;
    default: return NOT_COMMON;
    }
}

static unsigned kind_of_group(const struct code_x86 *x)
{
    const unsigned number = x->reg & 7;
    if (x->map == MAP_0F)
        return number == 0 ? COMMON : NOT_COMMON; // nop
    switch (x->opcode) {
    case 0x8d: return x->mode != 3 ? COMMON : NOT_COMMON;
    case 0xc6: return number == 0 ? COMMON : NOT_COMMON;
    case 0xc7: return number == 0 ? COMMON_4 : NOT_COMMON;
    case 0xf6: return number != 1 ? COMMON : NOT_COMMON;
    case 0xf7: return number == 1 ? NOT_COMMON : number == 0 ? COMMON_4 : COMMON;
    case 0xfe: return number < 2 ? COMMON : NOT_COMMON;
    case 0xff: return number == 4 ? STOPS : number < 3 || number == 6 ? COMMON : NOT_COMMON;
    default: return number != 6 ? COMMON : NOT_COMMON; // shifts
    }
}

static void read_memory(const struct code_x86 *x, uint64_t end, unsigned modrm_at, struct calls_instruction *out)
{
    if (!x->has_modrm)
        return;
    if (x->by_pc) {
        out->has_address = true;
        out->operand_at = (uint8_t)(modrm_at + 1);
        out->target = end + (uint64_t)(int64_t)x->displacement;
        return;
    }
    if (x->mode == 3 || x->low >= 8 || x->rex & 1)
        return;
    if (x->low == SP && x->base == SP && x->index == NO_NUMBER)
        out->base = CALLS_BASE_SP;
    else if (x->low == BP && x->mode != 0)
        out->base = CALLS_BASE_FP;
    out->offset = x->displacement;
    out->words = out->base != CALLS_BASE_NONE;
}

static bool has_wide_displacement(const struct code_x86 *x)
{
    return x->has_modrm && (x->mode == 2 || (x->mode == 0 && x->base == NO_NUMBER));
}

static bool take_jump(const struct code_x86 *x, unsigned kind, uint64_t end, struct calls_instruction *out)
{
    switch (kind) {
    case JUMP_1:
    case JUMP_4: out->flow = CALLS_FLOW_JUMP; break;
    case CONDITION_1:
    case CONDITION_4: out->flow = CALLS_FLOW_CONDITION; break;
    case CALL_4: out->flow = CALLS_FLOW_CALL; break;
    default: return false;
    }
    out->operand_at = (uint8_t)(x->size_bytes - (kind == JUMP_1 || kind == CONDITION_1 ? 1 : 4));
    out->target = end + (uint64_t)x->number;
    return true;
}

bool calls_read_common_x86_64(struct base_bytes bytes, uint64_t vaddr, struct calls_instruction *out)
{
    struct code_x86 x;
    if (bytes.size < 3)
        return false;
    const unsigned at = (bytes.data[0] & 0xf0) == 0x40, first = bytes.data[at], is_0f = first == 0x0f;
    unsigned kind = is_0f ? kind_of_0f(bytes.data[at + 1]) : kind_of_one_byte(first);
    if (kind == NOT_COMMON || !code_x86_take_apart(bytes, true, &x))
        return false;
    if (kind == GROUP)
        kind = kind_of_group(&x);
    if (kind == NOT_COMMON)
        return false;
    const uint64_t end = vaddr + x.size_bytes;
    *out = (struct calls_instruction){.length = x.size_bytes, .is_movable = true};
    if (take_jump(&x, kind, end, out))
        return true;
    out->flow = kind == STOPS ? CALLS_FLOW_STOP : CALLS_FLOW_NEXT;
    read_memory(&x, end, at + 1 + is_0f, out);
    const bool is_one = !is_0f;
    if (is_one && x.opcode == 0xff && (x.reg & 7) == 2) {
        // Not by way of the stack that the return address was pushed to before.
        out->flow = CALLS_FLOW_CALL_BY;
        out->operand_at = (uint8_t)(at + 1);
        out->is_movable = x.base != SP;
    }
    out->is_nop = is_0f && x.opcode == 0x1f;
    out->is_pop = is_one && (x.opcode & 0xf8) == 0x58;
    out->is_lea = is_one && x.opcode == 0x8d;
    if (kind == COMMON_4)
        out->constant = (uint64_t)x.number;
    else if (has_wide_displacement(&x) && !out->has_address)
        out->constant = (uint64_t)(int64_t)x.displacement;
    return true;
}
