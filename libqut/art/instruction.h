// SPDX-License-Identifier: Apache-2.0
// Machine code of ART's compilers, one instruction at a time: only what it does to the stack pointer, to the return
// address, which words it moves between registers and the stack, and where it branches to. What an instruction computes
// does not matter here.
#ifndef QUT_ART_INSTRUCTION_H
#define QUT_ART_INSTRUCTION_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum { ART_ACCESSES_MAX = 16 };

enum art_effect {
    ART_PLAIN,
    ART_CALL,
    ART_RETURN,
    ART_LEAVES,  // goes on elsewhere, unconditionally
    ART_RA_LOST, // the return-address register is overwritten
    ART_SP_LOST, // the stack pointer becomes something that is not known, or the instruction is not known
};

// Whole words at sp + offset_bytes, sp being that before the instruction.
struct art_access {
    uint8_t reg; // number of the instruction set
    int32_t offset_bytes;
};

struct art_instruction {
    uint8_t size_bytes; // 0: cut off, or not known
    uint8_t effect;     // enum art_effect
    uint8_t access_count;
    bool loads;    // else the accesses are stores
    bool branches; // to a place in the code: branch_bytes from the instruction's start
    int32_t branch_bytes;
    int32_t sp_change_bytes;
    struct art_access access[ART_ACCESSES_MAX];
};

static inline void art_add_access(struct art_instruction *instruction, unsigned reg, int32_t offset_bytes)
{
    if (instruction->access_count < ART_ACCESSES_MAX)
        instruction->access[instruction->access_count++] = (struct art_access){(uint8_t)reg, offset_bytes};
}

static inline void art_set_branch(struct art_instruction *instruction, int32_t bytes)
{
    instruction->branches = true;
    instruction->branch_bytes = bytes;
}

enum { ART_X86_BYTES_MAX = 15 }; // of one instruction

// Of x86 and x86-64; at most that many bytes are looked at. All fields but accesses behind access_count are filled.
// Signal-safe.
void art_read_x86(const uint8_t *code, size_t size, bool is_64, struct art_instruction *instruction);

#endif
