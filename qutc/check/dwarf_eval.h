// SPDX-License-Identifier: Apache-2.0
// The DWARF expression stack machine of the judges: decoded operations in, one value out. Values wrap at the word of
// the architecture. Knows nothing of the compiler's own reading of expressions.
#ifndef QUTC_CHECK_DWARF_EVAL_H
#define QUTC_CHECK_DWARF_EVAL_H

#include "libqut/runtime/rule_eval.h"
#include "qutc/base/cursor.h"

enum {
    QUTC_DWARF_STACK_MAX = 64,
    QUTC_DWARF_STEPS_MAX = 4096, // bound on executed operations: `skip` can go backwards
};

struct qutc_dwarf_op {
    uint8_t atom;     // DW_OP_*
    uint64_t number;  // operands; signed ones are sign-extended
    uint64_t number2; // bregx: offset
    uint64_t offset;  // of the operation in its expression, the target of branches
};

enum qutc_dwarf_result {
    QUTC_DWARF_VALUE,   // *value is the result itself: stack_value, or a register
    QUTC_DWARF_ADDRESS, // *value is where the result is
    QUTC_DWARF_UNKNOWN_OP,
    QUTC_DWARF_BAD_PROGRAM, // stack under- or overflow, a branch out of the expression, too many steps, division by
                            // zero
    QUTC_DWARF_NO_REGISTER,
    QUTC_DWARF_BAD_MEMORY,
};

struct qutc_dwarf_machine {
    unsigned word_bytes;
    const struct qut_frame_regs *frame;
    uint64_t vector_bytes_reg; // as struct qut_arch has it
    bool has_cfa; // call_frame_cfa pushes `cfa`
    uint64_t cfa;
    qut_read_word read;
    void *context;
};

// Takes an expression apart. Returns false where it is truncated, holds an unknown operation or has more than
// `capacity` operations.
bool qutc_dwarf_decode(struct qutc_bytes expression, unsigned word_bytes, struct qutc_dwarf_op *ops, unsigned capacity,
                       unsigned *count);

enum qutc_dwarf_result qutc_dwarf_run(const struct qutc_dwarf_machine *machine, const struct qutc_dwarf_op *ops,
                                      unsigned count, uint64_t *value);

#endif
