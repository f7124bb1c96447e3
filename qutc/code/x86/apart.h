// SPDX-License-Identifier: Apache-2.0
// One instruction of x86 or x86-64, taken apart: prefixes, opcode, operands. Intel SDM volume 2; numbers of registers
// are the machine's here.
#ifndef QUTC_CODE_X86_APART_H
#define QUTC_CODE_X86_APART_H

#include <stdbool.h>
#include <stdint.h>

#include "base/cursor_inline.h"

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

#endif
