// SPDX-License-Identifier: Apache-2.0
// Each instruction jumps to the next one's code by itself: processors guess such jumps better than those of one
// `switch`. Uses general registers only where it is compiled so, and nothing of libc.
#include "bytecode/run.h"

// The operations: a name, and what becomes of a and b (both `word`, with `sword` the same signed).
#define OPERATIONS(X)                                                                                                  \
    X(ADD, a + b)                                                                                                      \
    X(SUB, a - b)                                                                                                      \
    X(MUL, a *b)                                                                                                       \
    X(OR, a | b)                                                                                                       \
    X(AND, a &b)                                                                                                       \
    X(LSH, a << (b & (8 * sizeof a - 1)))                                                                              \
    X(RSH, a >> (b & (8 * sizeof a - 1)))                                                                              \
    X(XOR, a ^ b)

#define CONDITIONS(X)                                                                                                  \
    X(JEQ, a == b)                                                                                                     \
    X(JNE, a != b)                                                                                                     \
    X(JGT, a > b)                                                                                                      \
    X(JGE, a >= b)                                                                                                     \
    X(JLT, a < b)                                                                                                      \
    X(JLE, a <= b)                                                                                                     \
    X(JSET, (a & b) != 0)                                                                                              \
    X(JSGT, signed_a > signed_b)                                                                                       \
    X(JSGE, signed_a >= signed_b)                                                                                      \
    X(JSLT, signed_a < signed_b)                                                                                       \
    X(JSLE, signed_a <= signed_b)

// Rare, and with cases of their own: RFC 9669, section 4.1.
static uint64_t divide(uint64_t a, uint64_t b, bool is_signed, bool is_remainder)
{
    if (b == 0)
        return is_remainder ? a : 0;
    if (!is_signed)
        return is_remainder ? a % b : a / b;
    if ((int64_t)b == -1) // the least number has no opposite
        return is_remainder ? 0 : 0 - a;
    return (uint64_t)(is_remainder ? (int64_t)a % (int64_t)b : (int64_t)a / (int64_t)b);
}

static uint64_t divide_32(uint64_t a, uint64_t b, bool is_signed, bool is_remainder)
{
    const uint64_t wide_a = is_signed ? (uint64_t)(int32_t)(uint32_t)a : (uint32_t)a;
    const uint64_t wide_b = is_signed ? (uint64_t)(int32_t)(uint32_t)b : (uint32_t)b;
    return (uint32_t)divide(wide_a, wide_b, is_signed, is_remainder);
}

static uint64_t extended(uint64_t value, int16_t bits)
{
    switch (bits) {
    case 8: return (uint64_t)(int8_t)(uint8_t)value;
    case 16: return (uint64_t)(int16_t)(uint16_t)value;
    case 32: return (uint64_t)(int32_t)(uint32_t)value;
    default: return value;
    }
}

static uint64_t shifted_right(uint64_t value, uint64_t by)
{
    const uint64_t bits = value >> (by & 63);
    return value >> 63 && (by & 63) ? bits | ~UINT64_C(0) << (64 - (by & 63)) : bits;
}

#define TO                  r[i->registers & 0x0f]
#define FROM                r[i->registers >> 4]
#define NUMBER              ((uint64_t)(int64_t)i->immediate)
#define ADDRESS(TYPE, BASE) ((TYPE *)(uintptr_t)((BASE) + (uint64_t)(int64_t)i->offset))
#define NEXT                                                                                                           \
    do {                                                                                                               \
        i++;                                                                                                           \
        goto *ways[i->opcode];                                                                                         \
    } while (0)
#define GO(CONDITION)                                                                                                  \
    do {                                                                                                               \
        i += 1 + ((CONDITION) ? i->offset : 0);                                                                        \
        goto *ways[i->opcode];                                                                                         \
    } while (0)

// Words of the stack are read and written in parts as well.
typedef uint64_t __attribute__((may_alias)) any_u64;
typedef uint32_t __attribute__((may_alias)) any_u32;
typedef uint16_t __attribute__((may_alias)) any_u16;

uint64_t bytecode_run(const struct qut_probe_instruction *code, const uint64_t *fields, struct bytecode_host *host)
{
#define WAYS_OF(NAME, CLASS, LABEL)                                                                                    \
    [QUT_PROBE_##NAME | QUT_PROBE_CLASS_##CLASS] = &&LABEL##_k,                                                        \
                        [QUT_PROBE_##NAME | QUT_PROBE_CLASS_##CLASS | QUT_PROBE_SOURCE_X] = &&LABEL##_x,
#define OPERATION_WAYS(NAME, RESULT) WAYS_OF(NAME, ALU64, NAME##_64) WAYS_OF(NAME, ALU, NAME##_32)
#define CONDITION_WAYS(NAME, RESULT) WAYS_OF(NAME, JMP, NAME##_64) WAYS_OF(NAME, JMP32, NAME##_32)
#define MEMORY_WAYS(SIZE)                                                                                              \
    [QUT_PROBE_CLASS_LDX | QUT_PROBE_MODE_MEM | QUT_PROBE_SIZE_##                                                      \
        SIZE] = &&load_##SIZE,                                                                                         \
      [QUT_PROBE_CLASS_STX | QUT_PROBE_MODE_MEM | QUT_PROBE_SIZE_##SIZE] = &&store_##SIZE,                             \
      [QUT_PROBE_CLASS_ST | QUT_PROBE_MODE_MEM | QUT_PROBE_SIZE_##SIZE] = &&put_##SIZE,
    static const void *const ways[256] = {
        OPERATIONS(OPERATION_WAYS) CONDITIONS(CONDITION_WAYS)     // two operands
        WAYS_OF(DIV, ALU64, div_64) WAYS_OF(DIV, ALU, div_32)     // and an offset that says whether they are signed
        WAYS_OF(MOD, ALU64, mod_64) WAYS_OF(MOD, ALU, mod_32)     //
        WAYS_OF(ARSH, ALU64, arsh_64) WAYS_OF(ARSH, ALU, arsh_32) //
        WAYS_OF(MOV, ALU64, mov_64) WAYS_OF(MOV, ALU, mov_32)     //
        MEMORY_WAYS(B) MEMORY_WAYS(H) MEMORY_WAYS(W) MEMORY_WAYS(DW)[QUT_PROBE_NEG | QUT_PROBE_CLASS_ALU64] = &&neg_64,
        [QUT_PROBE_NEG | QUT_PROBE_CLASS_ALU] = &&neg_32,
        [QUT_PROBE_OP_WIDE] = &&wide,
        [QUT_PROBE_OP_JA] = &&ja,
        [QUT_PROBE_OP_CALL] = &&call,
        [QUT_PROBE_OP_EXIT] = &&leave,
    };
    uint64_t stack[QUT_PROBE_STACK_BYTES / 8], r[QUT_PROBE_REGISTERS];
    const struct qut_probe_instruction *i = code;
    r[1] = (uintptr_t)fields;
    r[QUT_PROBE_FRAME_REGISTER] = (uintptr_t)(stack + QUT_PROBE_STACK_BYTES / 8);
    goto *ways[i->opcode];

#define OPERATION(NAME, RESULT)                                                                                        \
    NAME##_64_k:                                                                                                       \
    {                                                                                                                  \
        const uint64_t a = TO, b = NUMBER;                                                                             \
        TO = RESULT;                                                                                                   \
        NEXT;                                                                                                          \
    }                                                                                                                  \
    NAME##_64_x:                                                                                                       \
    {                                                                                                                  \
        const uint64_t a = TO, b = FROM;                                                                               \
        TO = RESULT;                                                                                                   \
        NEXT;                                                                                                          \
    }                                                                                                                  \
    NAME##_32_k:                                                                                                       \
    {                                                                                                                  \
        const uint32_t a = (uint32_t)TO, b = (uint32_t)NUMBER;                                                         \
        TO = RESULT;                                                                                                   \
        NEXT;                                                                                                          \
    }                                                                                                                  \
    NAME##_32_x:                                                                                                       \
    {                                                                                                                  \
        const uint32_t a = (uint32_t)TO, b = (uint32_t)FROM;                                                           \
        TO = RESULT;                                                                                                   \
        NEXT;                                                                                                          \
    }
    OPERATIONS(OPERATION)

#define CONDITION(NAME, HOLDS)                                                                                         \
    NAME##_64_k:                                                                                                       \
    {                                                                                                                  \
        const uint64_t a = TO, b = NUMBER;                                                                             \
        const int64_t signed_a = (int64_t)a, signed_b = (int64_t)b;                                                    \
        (void)signed_a, (void)signed_b;                                                                                \
        GO(HOLDS);                                                                                                     \
    }                                                                                                                  \
    NAME##_64_x:                                                                                                       \
    {                                                                                                                  \
        const uint64_t a = TO, b = FROM;                                                                               \
        const int64_t signed_a = (int64_t)a, signed_b = (int64_t)b;                                                    \
        (void)signed_a, (void)signed_b;                                                                                \
        GO(HOLDS);                                                                                                     \
    }                                                                                                                  \
    NAME##_32_k:                                                                                                       \
    {                                                                                                                  \
        const uint32_t a = (uint32_t)TO, b = (uint32_t)NUMBER;                                                         \
        const int32_t signed_a = (int32_t)a, signed_b = (int32_t)b;                                                    \
        (void)signed_a, (void)signed_b;                                                                                \
        GO(HOLDS);                                                                                                     \
    }                                                                                                                  \
    NAME##_32_x:                                                                                                       \
    {                                                                                                                  \
        const uint32_t a = (uint32_t)TO, b = (uint32_t)FROM;                                                           \
        const int32_t signed_a = (int32_t)a, signed_b = (int32_t)b;                                                    \
        (void)signed_a, (void)signed_b;                                                                                \
        GO(HOLDS);                                                                                                     \
    }
    CONDITIONS(CONDITION)

#define MEMORY(SIZE, TYPE)                                                                                             \
    load_##SIZE : TO = *ADDRESS(const TYPE, FROM);                                                                     \
    NEXT;                                                                                                              \
    store_##SIZE : *ADDRESS(TYPE, TO) = (TYPE)FROM;                                                                    \
    NEXT;                                                                                                              \
    put_##SIZE : *ADDRESS(TYPE, TO) = (TYPE)NUMBER;                                                                    \
    NEXT;
    MEMORY(B, uint8_t)
    MEMORY(H, any_u16)
    MEMORY(W, any_u32)
    MEMORY(DW, any_u64)

div_64_k:
    TO = divide(TO, NUMBER, i->offset == 1, false);
    NEXT;
div_64_x:
    TO = divide(TO, FROM, i->offset == 1, false);
    NEXT;
div_32_k:
    TO = divide_32(TO, NUMBER, i->offset == 1, false);
    NEXT;
div_32_x:
    TO = divide_32(TO, FROM, i->offset == 1, false);
    NEXT;
mod_64_k:
    TO = divide(TO, NUMBER, i->offset == 1, true);
    NEXT;
mod_64_x:
    TO = divide(TO, FROM, i->offset == 1, true);
    NEXT;
mod_32_k:
    TO = divide_32(TO, NUMBER, i->offset == 1, true);
    NEXT;
mod_32_x:
    TO = divide_32(TO, FROM, i->offset == 1, true);
    NEXT;
arsh_64_k:
    TO = shifted_right(TO, NUMBER);
    NEXT;
arsh_64_x:
    TO = shifted_right(TO, FROM);
    NEXT;
arsh_32_k:
    TO = (uint32_t)shifted_right(extended(TO, 32), NUMBER & 31);
    NEXT;
arsh_32_x:
    TO = (uint32_t)shifted_right(extended(TO, 32), FROM & 31);
    NEXT;
mov_64_k:
    TO = NUMBER;
    NEXT;
mov_64_x:
    TO = extended(FROM, i->offset);
    NEXT;
mov_32_k:
    TO = (uint32_t)NUMBER;
    NEXT;
mov_32_x:
    TO = (uint32_t)extended(FROM, i->offset);
    NEXT;
neg_64:
    TO = 0 - TO;
    NEXT;
neg_32:
    TO = (uint32_t)(0 - TO);
    NEXT;
wide:
    TO = (uint32_t)i->immediate | (uint64_t)(uint32_t)i[1].immediate << 32;
    i++;
    NEXT;
ja:
    GO(true);
call:
    r[0] = host->call(host, (uint32_t)i->immediate, r[1], r[2], r[3]);
    NEXT;
leave:
    return r[0];
}
