// SPDX-License-Identifier: Apache-2.0
// What instructions of more than one byte of opcode do to general registers: few, among those of vectors. Where
// prefixes decide, and it does not matter, a register passes for written.
#include "qutc/code/x86/inside.h"

static void extend(const struct code_x86 *x, uint64_t vaddr, struct code_instruction *in)
{
    unsigned to = code_x86_dwarf(x, x->reg), from_bytes = x->opcode & 1 ? 2 : 1;
    bool is_signed = x->opcode >= 0xbe;
    bool is_high = x->mode == 3 && from_bytes == 1 && !x->has_rex && x->low >= 4;
    if (x->half_operand || is_high || (is_signed && x->is_64 && !(x->rex & 8))) {
        code_lose(in, to);
    } else if (x->mode != 3) {
        code_x86_load(x, vaddr, in, to, from_bytes, is_signed);
    } else {
        struct code_op *op = code_add(in, CODE_OP_EXTEND, to, code_x86_dwarf(x, x->low));
        op->size_bytes = (uint8_t)from_bytes;
        op->negative = is_signed;
    }
}

// Bytes that an instruction of vectors of the map 0f stores; 0: it loads.
static unsigned stored_bytes(const struct code_x86 *x)
{
    switch (x->opcode) {
    case 0x11: return x->repeat == 0xf3 ? 4 : x->repeat == 0xf2 ? 8 : x->vector_bytes ? x->vector_bytes : 16;
    case 0x29:
    case 0x2b:
    case 0xe7: // movntq: of 8 bytes without 66
    case 0x7f: return x->vector_bytes ? x->vector_bytes : 16;
    case 0x13:
    case 0x17:
    case 0xd6: return 8;
    case 0x7e: return x->repeat ? 0 : code_x86_operand_bytes(x) == 8 ? 8 : 4;
    case 0xc3: return code_x86_operand_bytes(x);
    default: return 0;
    }
}

// A register may be saved so.
static void keep_in_vector(const struct code_x86 *x, struct code_instruction *in)
{
    if (x->mode == 3)
        code_set(in, CODE_REG_SCRATCH, code_x86_dwarf(x, x->low), 0);
}

// Those with a general register among instructions of vectors, in map 0f with and without VEX.
static void judge_vectors_0f(const struct code_x86 *x, struct code_instruction *in)
{
    switch (x->opcode) {
    case 0x6e: keep_in_vector(x, in); return;
    case 0x2c:
    case 0x2d:
        if (x->repeat)
            code_x86_lose(x, in, x->reg);
        return;
    case 0x50:
    case 0xc5:
    case 0xd7: code_x86_lose(x, in, x->reg); return;
    case 0x7e:
        if (!x->repeat && x->mode == 3)
            code_x86_lose(x, in, x->low);
        break;
    default: break;
    }
    if (x->mode != 3 && stored_bytes(x))
        code_x86_store(x, in, NO_NUMBER, stored_bytes(x));
}

static void lose_many(const struct code_x86 *x, struct code_instruction *in, unsigned mask)
{
    for (unsigned number = 0; number < 16; number++)
        if (mask >> number & 1)
            code_x86_lose(x, in, number);
}

static void push_segment(const struct code_x86 *x, struct code_instruction *in)
{
    unsigned bytes = x->half_operand ? 2 : code_x86_word(x), sp = code_x86_dwarf(x, SP);
    bool pops = x->opcode & 1;
    code_set(in, sp, sp, pops ? (int64_t)bytes : -(int64_t)bytes);
    if (!pops)
        code_store(in, sp, 0, CODE_REG_NONE, bytes);
}

static bool judge_system(const struct code_x86 *x, struct code_instruction *in)
{
    switch (x->opcode) {
    case 0x00: // sldt, str
        if ((x->reg & 7) < 2)
            code_x86_write_rm(x, in, x->mode == 3 ? code_x86_operand_bytes(x) : 2);
        return true;
    case 0x01: // xgetbv, rdtscp, rdpru, ...; of memory: sgdt and the like; smsw
        if (x->mode == 3)
            lose_many(x, in, 1 << AX | 1 << CX | 1 << DX);
        if (x->mode == 3 && (x->reg & 7) == 4)
            code_x86_lose(x, in, x->low);
        return true;
    case 0x02:
    case 0x03: code_x86_lose(x, in, x->reg); return true;
    case 0x05: // the number of rt_sigreturn does not come back: behind it is another function
        in->flow = CODE_SYSTEM;
        lose_many(x, in, 1 << AX | 1 << CX | 1 << R11);
        return x->is_64;
    case 0x07:
    case 0x34: // sysenter comes back where the kernel was told
    case 0x35:
    case 0xaa: return false;
    case 0x20:
    case 0x21: code_x86_lose(x, in, x->low); return true;
    case 0x31:
    case 0x32:
    case 0x33: lose_many(x, in, 1 << AX | 1 << DX); return true;
    case 0x37: lose_many(x, in, 1 << AX | 1 << BX | 1 << CX); return true;
    case 0xa2: lose_many(x, in, 1 << AX | 1 << BX | 1 << CX | 1 << DX); return true;
    case 0xa6: // VIA's
    case 0xa7: lose_many(x, in, 1 << AX | 1 << BX | 1 << CX | 1 << DX | 1 << SI | 1 << DI); return x->mode == 3;
    case 0xae:
        if (x->mode == 3 && x->repeat)
            code_x86_lose(x, in, x->low);
        return true;
    default: return true;
    }
}

bool code_x86_judge_0f(const struct code_x86 *x, uint64_t vaddr, struct code_instruction *in)
{
    unsigned bytes = code_x86_operand_bytes(x);
    switch (x->opcode) {
    case 0x0b:
    case 0xb9:
    case 0xff:
        // ud0 and ud1 are traps of kernels' checks and sanitizers.
        in->flow = CODE_STOP;
        return true;
    case 0x00 ... 0x0a:
    case 0x20 ... 0x27:
    case 0x30 ... 0x37:
    case 0xa2:
    case 0xa6 ... 0xa7:
    case 0xaa:
    case 0xae: return judge_system(x, in);
    case 0x1e:
        if (x->repeat == 0xf3 && x->mode == 3) {
            in->is_landing = (x->reg & 7) == 7;
            code_x86_lose(x, in, (x->reg & 7) == 7 ? AX : x->low); // rdssp
            in->op_count -= in->is_landing;
        }
        return true;
    case 0x40 ... 0x4f:
    case 0xaf:
    case 0xb2:
    case 0xb4 ... 0xb5:
    case 0xb8:
    case 0xbc ... 0xbd: code_x86_lose(x, in, x->reg); return true;
    case 0x78: // vmread
        if (!x->half_operand && !x->repeat)
            code_x86_write_rm(x, in, code_x86_word(x));
        return true;
    case 0x80 ... 0x8f: code_x86_go_if(x, vaddr, in, x->opcode & 15); return true;
    case 0x90 ... 0x9f: code_x86_write_rm(x, in, 1); return true;
    case 0xa0 ... 0xa1:
    case 0xa8 ... 0xa9: push_segment(x, in); return true;
    case 0xa3: return true;
    case 0xa4 ... 0xa5:
    case 0xab ... 0xad:
    case 0xb3:
    case 0xbb: code_x86_write_rm(x, in, bytes); return true;
    case 0xb0 ... 0xb1:
        code_x86_write_rm(x, in, x->opcode & 1 ? bytes : 1);
        code_x86_lose(x, in, AX);
        return true;
    case 0xb6 ... 0xb7:
    case 0xbe ... 0xbf: extend(x, vaddr, in); return true;
    case 0xba:
        if ((x->reg & 7) != 4)
            code_x86_write_rm(x, in, bytes);
        return true;
    case 0xc0 ... 0xc1:
        code_x86_lose_sized(x, in, x->reg, x->opcode & 1 ? bytes : 1);
        code_x86_write_rm(x, in, x->opcode & 1 ? bytes : 1);
        return true;
    case 0xc7:
        if (x->mode == 3) { // rdrand, rdseed, rdpid
            code_x86_lose(x, in, x->low);
        } else if ((x->reg & 7) == 1) { // cmpxchg8b, cmpxchg16b
            lose_many(x, in, 1 << AX | 1 << DX);
            code_x86_store(x, in, NO_NUMBER, bytes == 8 ? 16 : 8);
        }
        return true;
    case 0xc8 ... 0xcf: code_x86_lose(x, in, (x->opcode & 7u) | ((unsigned)x->rex << 3 & 8u)); return true;
    default: judge_vectors_0f(x, in); return true;
    }
}

bool code_x86_judge_0f38(const struct code_x86 *x, struct code_instruction *in)
{
    switch (x->opcode) {
    case 0xf0: code_x86_lose(x, in, x->reg); return true;
    case 0xf1:
        if (x->repeat == 0xf2)
            code_x86_lose(x, in, x->reg);
        else
            code_x86_write_rm(x, in, code_x86_operand_bytes(x));
        return true;
    case 0xf5: // wrss, wruss
    case 0xf6: // adcx, adox
        code_x86_lose(x, in, x->reg);
        return true;
    case 0xf9: code_x86_store(x, in, NO_NUMBER, code_x86_operand_bytes(x)); return true;
    default: return true;
    }
}

bool code_x86_judge_0f3a(const struct code_x86 *x, struct code_instruction *in)
{
    static const uint8_t bytes[] = {1, 2, 8, 4}; // pextrb, pextrw, pextrd or pextrq, extractps
    if (x->opcode >= 0x14 && x->opcode <= 0x17) {
        if (x->mode == 3)
            code_x86_lose(x, in, x->low);
        else
            code_x86_store(x, in, NO_NUMBER, x->opcode == 0x16 && !(x->rex & 8) ? 4 : bytes[x->opcode & 3]);
    } else if (x->opcode == 0x22) { // pinsrd, pinsrq
        keep_in_vector(x, in);
    } else if (x->opcode >= 0x60 && x->opcode <= 0x63) { // pcmpestri and the like
        code_x86_lose(x, in, CX);
    }
    return true;
}

static bool judge_vex_0f(const struct code_x86 *x, struct code_instruction *in)
{
    switch (x->opcode) {
    case 0x78: // to unsigned
    case 0x79:
    case 0x93: // kmov
        code_x86_lose(x, in, x->reg);
        return true;
    case 0x91: // kmov to memory
        code_x86_store(x, in, NO_NUMBER, 8);
        return true;
    case 0xae: return true; // vldmxcsr
    default: judge_vectors_0f(x, in); return true;
    }
}

static bool judge_xop(const struct code_x86 *x, struct code_instruction *in)
{
    // Trailing bits; bextr; profiling.
    if (x->map == 9 && (x->opcode == 1 || x->opcode == 2))
        code_x86_lose(x, in, x->third);
    else if (x->map == 9 && x->opcode == 0x12)
        code_x86_lose(x, in, x->low);
    else if (x->map == 10)
        code_x86_lose(x, in, x->reg);
    return true;
}

static bool judge_vex_0f38(const struct code_x86 *x, struct code_instruction *in)
{
    if (x->opcode >= 0xf2 && x->opcode <= 0xf7) { // bmi1, bmi2
        code_x86_lose(x, in, x->reg);
        code_x86_lose(x, in, x->third);
    } else if (x->opcode >= 0xe0 && x->opcode <= 0xef && x->encoding == ENCODING_VEX) { // cmpccxadd
        code_x86_lose(x, in, x->reg);
        code_x86_lose(x, in, x->third);
    } else if (x->mode != 3 && ((x->opcode >= 0x10 && x->opcode <= 0x15) || (x->opcode >= 0x20 && x->opcode <= 0x35) ||
                                x->opcode == 0x2e || x->opcode == 0x2f || x->opcode == 0x8e)) {
        code_x86_store(x, in, NO_NUMBER, x->vector_bytes); // narrowed, or masked
    }
    return true;
}

bool code_x86_judge_vex(const struct code_x86 *x, struct code_instruction *in)
{
    if (x->encoding == ENCODING_XOP)
        return judge_xop(x, in);
    switch (x->map) {
    case 1: return judge_vex_0f(x, in);
    case 2: return judge_vex_0f38(x, in);
    case 3:
        if (x->opcode == 0xf0) { // rorx
            code_x86_lose(x, in, x->reg);
            return true;
        }
        if (x->opcode == 0x19 || x->opcode == 0x39 || x->opcode == 0x1b || x->opcode == 0x3b) {
            if (x->mode != 3)
                code_x86_store(x, in, NO_NUMBER, x->opcode & 2 ? 32 : 16);
            return true;
        }
        return code_x86_judge_0f3a(x, in);
    default: // half-precision: conversions to a general register, vmovw
        code_x86_lose(x, in, x->reg);
        if (x->opcode == 0x7e)
            code_x86_write_rm(x, in, 2);
        return true;
    }
}
