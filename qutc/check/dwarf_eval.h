// SPDX-License-Identifier: Apache-2.0
// The DWARF expression stack machine of the judges: decoded operations in, one value out. Values wrap at the word of
// the architecture. Knows nothing of the compiler's own reading of expressions.
#ifndef QUTC_CHECK_DWARF_EVAL_H
#define QUTC_CHECK_DWARF_EVAL_H

#include "base/cursor_inline.h"
#include "libqut/runtime/rule_eval.h"

enum {
    CHECK_DWARF_STACK_MAX = 64,
    CHECK_DWARF_STEPS_MAX = 4096, // bound on executed operations: `skip` can go backwards
};

struct check_dwarf_op {
    uint8_t atom;     // DW_OP_*
    uint64_t number;  // operands; signed ones are sign-extended
    uint64_t number2; // bregx: offset
    uint64_t offset;  // of the operation in its expression, the target of branches
};

enum check_dwarf_result {
    CHECK_DWARF_VALUE,   // *value is the result itself: stack_value, or a register
    CHECK_DWARF_ADDRESS, // *value is where the result is
    CHECK_DWARF_UNKNOWN_OP,
    CHECK_DWARF_BAD_PROGRAM, // stack under- or overflow, a branch out of the expression, too many steps, division by
                             // zero
    CHECK_DWARF_NO_REGISTER,
    CHECK_DWARF_BAD_MEMORY,
};

struct check_dwarf_machine {
    unsigned word_bytes;
    const struct arch_frame_regs *frame;
    uint64_t vector_bytes_reg; // as struct arch has it
    bool has_cfa;              // call_frame_cfa pushes `cfa`
    uint64_t cfa;
    runtime_read_word read;
    void *context;
};

// Takes an expression apart. Returns false where it is truncated, holds an unknown operation or has more than
// `capacity` operations.
bool check_dwarf_decode(struct base_bytes expression, unsigned word_bytes, struct check_dwarf_op *ops,
                        unsigned capacity, unsigned *count);

enum check_dwarf_result check_dwarf_run(const struct check_dwarf_machine *machine, const struct check_dwarf_op *ops,
                                        unsigned count, uint64_t *value);

#endif
