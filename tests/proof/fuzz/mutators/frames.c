// SPDX-License-Identifier: Apache-2.0
// Frame sections, record by record: lengths stay true, programs get whole instructions. A change of any byte mostly
// breaks a length, and the reader gives up before it has seen a program.
#include <string.h>

#include "qutc/cfi/dwarf_constants.h"
#include "tests/proof/fuzz/targets.h"

enum { HEAD_BYTES = 2, RECORDS_MAX = 256, LENGTH_BYTES = 4 };

struct records {
    size_t at[RECORDS_MAX + 1]; // where each begins; at[count] is where the last one ends
    size_t count;
};

// Those of the 32-bit form, up to the first whose length does not fit.
static void find(struct records *records, const uint8_t *data, size_t size)
{
    size_t at = 0;
    records->count = 0;
    while (records->count < RECORDS_MAX && size - at >= LENGTH_BYTES) {
        uint32_t length;
        memcpy(&length, data + at, sizeof length);
        if (length > size - at - LENGTH_BYTES)
            break;
        records->at[records->count++] = at;
        at += LENGTH_BYTES + length;
    }
    records->at[records->count] = at;
}

static size_t put_leb(struct fuzz_mutation *m, uint8_t *to)
{
    static const uint8_t values[] = {0, 1, 2, 4, 6, 7, 8, 13, 16, 29, 30, 31, 63, 64, 0x70, 0x78, 0x7c, 0x7f};
    size_t size = 0;
    while (fuzz_random(m, 8) == 0 && size < 3)
        to[size++] = (uint8_t)(0x80 | fuzz_random(m, 128));
    to[size++] = values[fuzz_random(m, sizeof values)];
    return size;
}

// An expression of a few operations that have stack enough, mostly.
static size_t put_expression(struct fuzz_mutation *m, uint8_t *to)
{
    static const uint8_t plain[] = {OP_DEREF, OP_DROP, OP_AND,  OP_MINUS,    OP_MUL,   OP_PLUS,
                                    OP_SHL,   OP_GE,   OP_LIT0, OP_LIT0 + 8, OP_LIT31, OP_NOP};
    size_t size = 1; // its length comes first
    to[size++] = (uint8_t)(OP_BREG0 + fuzz_random(m, 32));
    size += put_leb(m, to + size);
    for (uint32_t i = fuzz_random(m, 6); i > 0; i--) {
        switch (fuzz_random(m, 4)) {
        case 0:
            to[size++] = OP_PLUS_UCONST;
            size += put_leb(m, to + size);
            break;
        case 1:
            to[size++] = (uint8_t)(OP_BREG0 + fuzz_random(m, 32));
            size += put_leb(m, to + size);
            break;
        case 2:
            to[size++] = OP_CONST1U;
            to[size++] = (uint8_t)fuzz_random(m, 256);
            break;
        default: to[size++] = plain[fuzz_random(m, sizeof plain)]; break;
        }
    }
    to[0] = (uint8_t)(size - 1);
    return size;
}

// Returns its size, at most 64.
static size_t put_instruction(struct fuzz_mutation *m, uint8_t *to)
{
    enum { NONE, LEB, LEB_LEB, EXPRESSION, LEB_EXPRESSION, BYTES_1, BYTES_2, BYTES_4 };
    static const struct {
        uint8_t opcode, operands;
    } all[] = {
        {CFA_NOP, NONE},
        {CFA_AARCH64_NEGATE_RA_STATE_WITH_PC, NONE},
        {CFA_ADVANCE_LOC1, BYTES_1},
        {CFA_ADVANCE_LOC2, BYTES_2},
        {CFA_ADVANCE_LOC4, BYTES_4},
        {CFA_OFFSET_EXTENDED, LEB_LEB},
        {CFA_RESTORE_EXTENDED, LEB},
        {CFA_UNDEFINED, LEB},
        {CFA_SAME_VALUE, LEB},
        {CFA_REGISTER, LEB_LEB},
        {CFA_REMEMBER_STATE, NONE},
        {CFA_RESTORE_STATE, NONE},
        {CFA_DEF_CFA, LEB_LEB},
        {CFA_DEF_CFA_REGISTER, LEB},
        {CFA_DEF_CFA_OFFSET, LEB},
        {CFA_DEF_CFA_EXPRESSION, EXPRESSION},
        {CFA_EXPRESSION, LEB_EXPRESSION},
        {CFA_OFFSET_EXTENDED_SF, LEB_LEB},
        {CFA_DEF_CFA_SF, LEB_LEB},
        {CFA_DEF_CFA_OFFSET_SF, LEB},
        {CFA_VAL_OFFSET, LEB_LEB},
        {CFA_VAL_OFFSET_SF, LEB_LEB},
        {CFA_VAL_EXPRESSION, LEB_EXPRESSION},
        {CFA_AARCH64_NEGATE_RA_STATE, NONE},
        {CFA_GNU_ARGS_SIZE, LEB},
        {CFA_GNU_NEGATIVE_OFFSET_EXTENDED, LEB_LEB},
        {CFA_ADVANCE_LOC, NONE},
        {CFA_OFFSET, LEB},
        {CFA_RESTORE, NONE},
    };
    size_t size = 0, which = fuzz_random(m, sizeof all / sizeof *all);
    uint8_t opcode = all[which].opcode;
    if (opcode >= CFA_ADVANCE_LOC)
        opcode |= (uint8_t)fuzz_random(m, fuzz_random(m, 4) ? 16 : 64);
    to[size++] = opcode;
    switch (all[which].operands) {
    case LEB: size += put_leb(m, to + size); break;
    case LEB_LEB:
        size += put_leb(m, to + size);
        size += put_leb(m, to + size);
        break;
    case LEB_EXPRESSION: size += put_leb(m, to + size); // fall through
    case EXPRESSION: size += put_expression(m, to + size); break;
    case BYTES_4: to[size++] = (uint8_t)fuzz_random(m, 256); to[size++] = 0; // fall through
    case BYTES_2: to[size++] = (uint8_t)fuzz_random(m, 256);                 // fall through
    case BYTES_1: to[size++] = (uint8_t)fuzz_random(m, 256); break;
    default: break;
    }
    return size;
}

// Puts bytes into a record, and its length right.
static size_t insert(uint8_t *data, size_t size, size_t record, size_t at, const uint8_t *bytes, size_t count)
{
    uint32_t length;
    memmove(data + at + count, data + at, size - at);
    memcpy(data + at, bytes, count);
    memcpy(&length, data + record, sizeof length);
    length += (uint32_t)count;
    memcpy(data + record, &length, sizeof length);
    return size + count;
}

size_t fuzz_mutate_records(struct fuzz_mutation *m, uint8_t *data, size_t size, size_t max_size)
{
    enum { INSTRUCTIONS_BYTES = 256, FIELDS_BYTES = 40 };
    struct records records;
    find(&records, data, size);
    if (records.count == 0)
        return m->bytes(data, size, max_size);
    uint32_t which = fuzz_random(m, (uint32_t)records.count);
    size_t at = records.at[which], end = records.at[which + 1], length = end - at;
    switch (fuzz_random(m, 5)) {
    case 0: // the fields before its program
        if (length > LENGTH_BYTES) {
            size_t part = length - LENGTH_BYTES < FIELDS_BYTES ? length - LENGTH_BYTES : FIELDS_BYTES;
            m->bytes(data + at + LENGTH_BYTES, part, part);
        }
        return size;
    case 1: // another one like it, which a change to come will tell from it
        if (size + length > max_size)
            return size;
        memmove(data + end + length, data + end, size - end);
        memcpy(data + end, data + at, length);
        return size + length;
    case 2:
        if (records.count == 1)
            return size;
        memmove(data + at, data + end, size - end);
        return size - length;
    default: {
        uint8_t made[INSTRUCTIONS_BYTES];
        size_t count = 0;
        for (uint32_t i = 1 + fuzz_random(m, 3); i > 0; i--)
            count += put_instruction(m, made + count);
        return size + count <= max_size ? insert(data, size, at, end, made, count) : size;
    }
    }
}

// As fuzz_cfi takes it.
size_t fuzz_mutate_frames(struct fuzz_mutation *m, uint8_t *data, size_t size, size_t max_size)
{
    if (size <= HEAD_BYTES || fuzz_random(m, 8) == 0)
        return m->bytes(data, size, max_size);
    return HEAD_BYTES + fuzz_mutate_records(m, data + HEAD_BYTES, size - HEAD_BYTES, max_size - HEAD_BYTES);
}
