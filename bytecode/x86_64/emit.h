// SPDX-License-Identifier: Apache-2.0
// Instructions of x86-64, one behind the other. Where they are not to be written they are counted.
#ifndef BYTECODE_X86_64_EMIT_H
#define BYTECODE_X86_64_EMIT_H

#include <stdbool.h>
#include <stdint.h>

#pragma GCC visibility push(hidden)

enum emit_register { RAX, RCX, RDX, RBX, RSP, RBP, RSI, RDI, R8, R9, R10, R11, R12, R13, R14, R15 };

struct emit {
    uint8_t *to; // NULL: nothing is written
    uint32_t at;
};

// Of single bytes there are rax, rcx, rdx, rbx, and those from r8 on: the others would need a prefix.
// The width of an operation. Those of 32 bits zero the upper half of what they write.
enum emit_width { WIDTH_32, WIDTH_64 };

void x86_64_byte(struct emit *emit, unsigned byte);
void x86_64_number(struct emit *emit, uint64_t number, unsigned bytes);

// An operation on two registers; `to` is in ModRM.rm.
void x86_64_registers(struct emit *emit, enum emit_width width, unsigned opcode, unsigned from, unsigned to);
// The same with two bytes of opcode, of which the first is 0x0f; bits of `from` are extended to bits of `to`, which is
// in ModRM.reg.
void x86_64_extension(struct emit *emit, enum emit_width width, unsigned opcode, unsigned to, unsigned from);
// A register and memory: of 1, 2, 4 or 8 bytes. The opcode is that of 2 bytes and more, of 1 byte it is one less.
void x86_64_store(struct emit *emit, unsigned bytes, unsigned base, int32_t offset, unsigned from);
void x86_64_store_number(struct emit *emit, unsigned bytes, unsigned base, int32_t offset, int32_t number);
void x86_64_load(struct emit *emit, unsigned bytes, unsigned to, unsigned base, int32_t offset);

// Of the eight that ModRM.reg chooses from: add 0, or 1, and 4, sub 5, xor 6, cmp 7.
void x86_64_group(struct emit *emit, enum emit_width width, unsigned operation, unsigned to, unsigned from);
void x86_64_group_number(struct emit *emit, enum emit_width width, unsigned operation, unsigned to, int32_t number);
// Of the unary ones: not 2, neg 3, mul 4, imul 5, div 6, idiv 7.
void x86_64_unary(struct emit *emit, enum emit_width width, unsigned operation, unsigned to);
// shl 4, shr 5, sar 7; by rcx, or by a number.
void x86_64_shift(struct emit *emit, enum emit_width width, unsigned operation, unsigned to);
void x86_64_shift_number(struct emit *emit, enum emit_width width, unsigned operation, unsigned to, unsigned by);
void x86_64_multiply(struct emit *emit, enum emit_width width, unsigned to, unsigned from);
void x86_64_multiply_number(struct emit *emit, enum emit_width width, unsigned to, int32_t number);
void x86_64_test(struct emit *emit, enum emit_width width, unsigned a, unsigned b);
void x86_64_test_number(struct emit *emit, enum emit_width width, unsigned a, int32_t number);

void x86_64_move(struct emit *emit, enum emit_width width, unsigned to, unsigned from);
void x86_64_move_number(struct emit *emit, unsigned to, uint64_t number);

// Where a jump of a byte leads is said once that is known.
uint32_t x86_64_jump_ahead(struct emit *emit, unsigned opcode);
void x86_64_land(struct emit *emit, uint32_t jump);

#pragma GCC visibility pop

#endif
