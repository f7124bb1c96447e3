// SPDX-License-Identifier: Apache-2.0
// Machine code of OAT methods, read one instruction at a time: only what it does to the stack pointer, to the return
// address, which words it moves between registers and the stack, and where it branches to. What an instruction computes
// does not matter here.
#ifndef QUTC_CFI_OAT_CODE_H
#define QUTC_CFI_OAT_CODE_H

#include "libqut/arch/arch.h"
#include "qutc/base/cursor.h"

enum { QUTC_OAT_ACCESSES_MAX = 16 };

enum qutc_oat_effect {
    QUTC_OAT_PLAIN,
    QUTC_OAT_CALL,
    QUTC_OAT_RETURN,
    QUTC_OAT_LEAVES,  // goes on elsewhere, unconditionally
    QUTC_OAT_RA_LOST, // the return-address register is overwritten
    QUTC_OAT_SP_LOST, // the stack pointer becomes something that is not known, or the instruction is not known
};

// Whole words at sp + offset_bytes, sp being that before the instruction.
struct qutc_oat_access {
    uint8_t reg; // number of the instruction set
    int32_t offset_bytes;
};

struct qutc_oat_instruction {
    uint8_t size_bytes; // 0: cut off, or not known
    uint8_t effect;     // enum qutc_oat_effect
    uint8_t access_count;
    bool loads;    // else the accesses are stores
    bool branches; // to a place in the code: branch_bytes from the instruction's start
    int32_t branch_bytes;
    int32_t sp_change_bytes;
    struct qutc_oat_access access[QUTC_OAT_ACCESSES_MAX];
};

typedef void (*qutc_oat_read_fn)(struct qutc_bytes code, struct qutc_oat_instruction *instruction);

// Read the instruction at the code's start. Call them by qutc_oat_read.
void qutc_oat_read_aarch64(struct qutc_bytes code, struct qutc_oat_instruction *instruction);
void qutc_oat_read_thumb(struct qutc_bytes code, struct qutc_oat_instruction *instruction);
void qutc_oat_read_x86(struct qutc_bytes code, struct qutc_oat_instruction *instruction);
void qutc_oat_read_x86_64(struct qutc_bytes code, struct qutc_oat_instruction *instruction);
void qutc_oat_read_riscv64(struct qutc_bytes code, struct qutc_oat_instruction *instruction);

static inline void qutc_oat_read(qutc_oat_read_fn read, struct qutc_bytes code,
                                 struct qutc_oat_instruction *instruction)
{
    memset(instruction, 0, offsetof(struct qutc_oat_instruction, access)); // of these, access_count are filled
    read(code, instruction);
}

static inline void qutc_oat_add_access(struct qutc_oat_instruction *instruction, unsigned reg, int32_t offset_bytes)
{
    if (instruction->access_count < QUTC_OAT_ACCESSES_MAX)
        instruction->access[instruction->access_count++] = (struct qutc_oat_access){(uint8_t)reg, offset_bytes};
}

static inline void qutc_oat_branch(struct qutc_oat_instruction *instruction, int32_t bytes)
{
    instruction->branches = true;
    instruction->branch_bytes = bytes;
}

// The low `bits` bits as a signed number.
static inline int32_t qutc_oat_signed(uint32_t value, unsigned bits)
{
    return (int32_t)(value << (32 - bits)) >> (32 - bits);
}

#endif
