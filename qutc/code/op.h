// SPDX-License-Identifier: Apache-2.0
// Machine code as a follower of stacks sees it: of each instruction only what it does to registers as whole words, to
// words on the stack, and where it goes on. A decoder of one architecture fills this; who follows them knows no
// architecture.
//
// The one rule for decoders: what an instruction writes is said. A register that may be written and is not named by an
// operation passes for unchanged, which makes wrong rules; CODE_OP_LOSE is always true. Registers are DWARF numbers, as
// everywhere here; those that DWARF numbers from arch->register_count on (vectors, flags) are not spoken of.
#ifndef QUTC_CODE_OP_H
#define QUTC_CODE_OP_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/cursor_inline.h"
#include "libqut/arch/arch.h"

enum {
    CODE_REG_SCRATCH = ARCH_REGISTERS_MAX, // no register of the machine: a decoder's own, within one instruction
    CODE_REGISTERS = ARCH_REGISTERS_MAX + 1,
    CODE_REG_NONE = QUT_NO_REGISTER,
    CODE_OPS_MAX = 24,
    CODE_MODE_BY_ADDRESS = 2,
};

// What an operation does. An instruction's take effect one after another, in their order: a push is ADD of sp, then
// STORE. A base register that the same instruction also loads must therefore be loaded last.
enum code_op_kind {
    CODE_OP_LOSE,    // to = something not known (also: all that is not a whole word, or not expressible)
    CODE_OP_COMPUTE, // likewise: the result of arithmetic, no copy, nor taken back by more arithmetic. from not NONE:
                     // it is so if what that holds is
    CODE_OP_SET,    // to = from + number. from NONE: to = number, a constant, or an address of the file
    CODE_OP_ADD,    // to = from + (other << shift) + number; `negative`: from - (other << shift)
    CODE_OP_AND,    // to = from & number; number is negative where it aligns (-16), or a mask
    CODE_OP_OR,     // to = from | number: the bit that says an address is Thumb's
    CODE_OP_SHIFT,  // to = from << shift
    CODE_OP_INSERT, // to = to with `size_bytes` bytes at bit `shift` replaced by number (movk, movt)
    CODE_OP_EXTEND, // to = the low `size_bytes` bytes of from, `negative`: sign-extended, else zero-extended
    CODE_OP_VECTOR, // to = number * bytes of a vector register (riscv64: vlenb)
    CODE_OP_LOAD,   // to = *(from + number), size_bytes of it, extended as EXTEND says; a word: size_bytes = word_bytes
    CODE_OP_INDEXED, // to = *(from + (other << shift) + number), likewise. from NONE: number alone. Jump tables
    CODE_OP_STORE,   // *(to + number) = from, size_bytes of it. from NONE: of something else (vectors, constants)
    CODE_OP_COMPARE, // from with number, or with `other`: for the branch behind it
    CODE_OP_SIGN,    // the address in `to` is signed, sp being the modifier; number: 0 key A, 1 key B
    CODE_OP_AUTH,    // ... is authenticated, and is plain again
};

struct code_op {
    uint8_t kind; // enum code_op_kind
    uint8_t to, from, other;
    uint8_t shift;
    uint8_t size_bytes;
    bool negative;
    int64_t number;
};

enum code_flow {
    CODE_NEXT,    // goes on behind itself
    CODE_CALL,    // of `target` or of what `through` holds; then behind itself
    CODE_JUMP,    // to `target` or to what `through` holds
    CODE_BRANCH,  // to `target`, or behind itself
    CODE_RETURN,  // to what `through` holds, and that is meant as a return (ret, bx lr, pop {pc})
    CODE_STOP,    // a trap: nothing goes on (ud2, brk, hlt, int3)
    CODE_SYSTEM,  // enters the kernel; then behind itself (but for calls that do not come back)
    CODE_UNKNOWN, // an instruction of known length that does what is not known: far jumps, instructions of kernels
};

// When a branch behind a COMPARE of register and number is taken: unsigned. Of the jump table's bound.
enum code_when {
    CODE_WHEN_OTHER,
    CODE_WHEN_ABOVE,    // from > number
    CODE_WHEN_AT_LEAST, // from >= number
    CODE_WHEN_BELOW,    // from < number
    CODE_WHEN_AT_MOST,  // from <= number
    CODE_WHEN_EQUAL,
    CODE_WHEN_UNEQUAL,
};

struct code_instruction {
    uint8_t size_bytes; // 0: cut off, not known, or data
    uint8_t flow;       // enum code_flow
    uint8_t when;       // enum code_when, BRANCH
    uint8_t through;    // CALL, JUMP, RETURN: register that holds where to; NONE: `target` says it. What is jumped to
                        // through memory is loaded into SCRATCH first
    bool conditional;   // all of it may also not happen (arm); a conditional jump or return goes on behind itself, too
    uint8_t conditional_next; // so many instructions behind it are conditional (Thumb's IT)
    bool is_padding;          // nop, int3 between functions: what compilers fill up with
    bool is_landing;          // endbr64, bti c, paciasp: where only functions (or targets of indirect jumps) begin
    uint8_t op_count;
    uint8_t target_mode; // or CODE_MODE_BY_ADDRESS: bit 0 of what `through` holds says it
    uint64_t target;     // virtual address of the file. arm: without bit 0; the mode stays, or target_mode
    struct code_op ops[CODE_OPS_MAX];
};

// Decodes the instruction at the code's start, whose virtual address is vaddr. `mode` tells instruction sets of one
// architecture apart (arm: 0 Arm, 1 Thumb; else 0). Everything but ops behind op_count is filled. Looks at
// code.size bytes at most. [allocates nothing; any threads]
typedef void (*code_read_fn)(struct base_bytes code, uint64_t vaddr, unsigned mode,
                             struct code_instruction *instruction);

void code_read_x86_64(struct base_bytes code, uint64_t vaddr, unsigned mode, struct code_instruction *instruction);
void code_read_x86(struct base_bytes code, uint64_t vaddr, unsigned mode, struct code_instruction *instruction);
void code_read_aarch64(struct base_bytes code, uint64_t vaddr, unsigned mode, struct code_instruction *instruction);
void code_read_riscv64(struct base_bytes code, uint64_t vaddr, unsigned mode, struct code_instruction *instruction);
void code_read_arm(struct base_bytes code, uint64_t vaddr, unsigned mode, struct code_instruction *instruction);

// What the follower must know of an architecture.
struct code_arch {
    code_read_fn read;            // NULL: its code is not followed
    uint64_t kept;                // bit of each register that a call leaves as it was, sp included
    uint16_t red_zone_bytes;      // below sp that nothing but the function writes
    bool callees_pop;             // some functions take what they were called with off the stack (x86's `ret N`)
    uint8_t argument_reg;         // the first of a call
    uint8_t call_number_reg;      // where a system call's number is, of those below
    uint16_t clones[2];           // behind which there may be another stack: clone, clone3
    uint16_t leaves[3];           // that do not come back: exit, exit_group, rt_sigreturn
    uint16_t relative_relocation; // its type
};
const struct code_arch *code_arch(const struct arch *arch);

// For decoders: an instruction that is not known yet, and one more operation of it, of which the caller fills the rest.
static inline void code_begin(struct code_instruction *in)
{
    memset(in, 0, offsetof(struct code_instruction, ops));
    in->through = CODE_REG_NONE;
}

static inline struct code_op *code_add(struct code_instruction *in, enum code_op_kind kind, unsigned to, unsigned from)
{
    // None has so many; where one had, its last would be overwritten, and the decoder's test sees it.
    unsigned i = in->op_count < CODE_OPS_MAX ? in->op_count++ : CODE_OPS_MAX - 1;
    in->ops[i] =
        (struct code_op){.kind = (uint8_t)kind, .to = (uint8_t)to, .from = (uint8_t)from, .other = CODE_REG_NONE};
    return &in->ops[i];
}

static inline void code_lose(struct code_instruction *in, unsigned reg)
{
    code_add(in, CODE_OP_LOSE, reg, CODE_REG_NONE);
}

static inline void code_set(struct code_instruction *in, unsigned to, unsigned from, int64_t number)
{
    code_add(in, CODE_OP_SET, to, from)->number = number;
}

static inline void code_load(struct code_instruction *in, unsigned to, unsigned base, int64_t number, unsigned bytes)
{
    struct code_op *op = code_add(in, CODE_OP_LOAD, to, base);
    op->number = number;
    op->size_bytes = (uint8_t)bytes;
}

static inline void code_store(struct code_instruction *in, unsigned base, int64_t number, unsigned from, unsigned bytes)
{
    struct code_op *op = code_add(in, CODE_OP_STORE, base, from);
    op->number = number;
    op->size_bytes = (uint8_t)bytes;
}

#endif
