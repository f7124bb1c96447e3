// SPDX-License-Identifier: Apache-2.0
// One instruction of x86 or x86-64, taken apart: prefixes, opcode, operands. Intel SDM volume 2; numbers of registers
// are the machine's here.
#ifndef QUTC_CODE_X86_INSIDE_H
#define QUTC_CODE_X86_INSIDE_H

#include "qutc/code/op.h"

enum code_x86_number { AX, CX, DX, BX, SP, BP, SI, DI, R11 = 11, NO_NUMBER = 0xff };

enum code_x86_map { MAP_ONE, MAP_0F, MAP_0F38, MAP_0F3A, MAP_OTHER };

enum code_x86_encoding { ENCODING_LEGACY, ENCODING_VEX, ENCODING_EVEX, ENCODING_XOP };

struct code_x86 {
    bool is_64;
    uint8_t encoding; // enum code_x86_encoding
    uint8_t map;      // enum code_x86_map; of VEX and its like the number
    uint8_t opcode;
    bool half_operand, other_address; // 66, 67
    uint8_t repeat;                   // f2, f3, 0
    bool by_segment;                  // fs, gs
    uint8_t rex;                      // W R X B, whether by REX or VEX
    bool has_rex;
    uint8_t third; // VEX.vvvv
    uint8_t vector_bytes;
    bool has_modrm;
    uint8_t mode, reg, low; // of ModRM; reg and low with REX
    // In memory (mode < 3): base + (index << scale) + displacement.
    uint8_t base, index, scale; // NO_NUMBER: none
    bool by_pc;                 // base is the next instruction's address
    int32_t displacement;
    int64_t number; // immediate, sign-extended
    uint8_t size_bytes;
};

// False where the instruction is not known or cut off.
bool code_x86_take_apart(struct base_bytes code, bool is_64, struct code_x86 *x);

// What it does, by the map of its opcode. False: that is not known.
bool code_x86_judge_one_byte(const struct code_x86 *x, uint64_t vaddr, struct code_instruction *in);
bool code_x86_judge_0f(const struct code_x86 *x, uint64_t vaddr, struct code_instruction *in);
bool code_x86_judge_0f38(const struct code_x86 *x, struct code_instruction *in);
bool code_x86_judge_0f3a(const struct code_x86 *x, struct code_instruction *in);
bool code_x86_judge_vex(const struct code_x86 *x, struct code_instruction *in);

// ---- operands.c: what judges share

unsigned code_x86_word(const struct code_x86 *x);          // bytes
unsigned code_x86_operand_bytes(const struct code_x86 *x); // 2, 4 or 8
unsigned code_x86_dwarf(const struct code_x86 *x, unsigned number);
void code_x86_lose(const struct code_x86 *x, struct code_instruction *in, unsigned number);
// A register of so many bytes as an instruction's operand names it: ah is a part of ax.
void code_x86_lose_sized(const struct code_x86 *x, struct code_instruction *in, unsigned number, unsigned bytes);
// The r/m operand is written, with something that is not known.
void code_x86_write_rm(const struct code_x86 *x, struct code_instruction *in, unsigned bytes);
// to = what is in memory; `is_signed`: sign-extended.
void code_x86_load(const struct code_x86 *x, uint64_t vaddr, struct code_instruction *in, unsigned to, unsigned bytes,
                   bool is_signed);
// from NO_NUMBER: something.
void code_x86_store(const struct code_x86 *x, struct code_instruction *in, unsigned from, unsigned bytes);
// On to the distance that the instruction ends with.
void code_x86_go_to(const struct code_x86 *x, uint64_t vaddr, struct code_instruction *in, unsigned flow);
void code_x86_go_if(const struct code_x86 *x, uint64_t vaddr, struct code_instruction *in, unsigned condition);

#endif
