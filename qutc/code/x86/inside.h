// SPDX-License-Identifier: Apache-2.0
// What the files of this folder share: what an instruction that was taken apart does.
#ifndef QUTC_CODE_X86_INSIDE_H
#define QUTC_CODE_X86_INSIDE_H

#include "qutc/code/op.h"
#include "qutc/code/x86/apart.h"

// What it does, by the map of its opcode. False: that is not known.
bool code_x86_judge_one_byte(const struct code_x86 *x, uint64_t vaddr, struct code_instruction *in);
bool code_x86_judge_0f(const struct code_x86 *x, uint64_t vaddr, struct code_instruction *in);
bool code_x86_judge_0f38(const struct code_x86 *x, struct code_instruction *in);
bool code_x86_judge_0f3a(const struct code_x86 *x, struct code_instruction *in);
bool code_x86_judge_vex(const struct code_x86 *x, struct code_instruction *in);

// ---- computed.c: of what it loses, what it computes.
void code_x86_tell_computed(const struct code_x86 *x, struct code_instruction *in);

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
