// SPDX-License-Identifier: Apache-2.0
// Applies a rule to a frame: registers in, caller's registers out. Signal-safe, allocates nothing, never blocks.
#ifndef QUT_RUNTIME_RULE_EVAL_H
#define QUT_RUNTIME_RULE_EVAL_H

#include <stdbool.h>
#include <stdint.h>

#include "formats/qut_rule.h"
#include "libqut/arch/arch.h"

enum { QUT_VECTOR_BYTES = 0xfd }; // asked for like a register: how many bytes a vector register has

// Reads one word of the walked stack; false where it cannot be read.
typedef bool (*qut_read_word)(void *context, uint64_t address, uint64_t *value);

enum qut_eval_result {
    QUT_EVAL_OK = 0,
    QUT_EVAL_END,         // the outermost frame: it has no return address
    QUT_EVAL_NO_RULE,     // hole or refused
    QUT_EVAL_NO_REGISTER, // the rule needs a register that is not known
    QUT_EVAL_BAD_MEMORY,
};

// *caller gets pc (the return address as found, not stripped, not adjusted), sp and the tracked registers. `cfa` may be
// NULL. On anything but OK *caller holds nothing of use, except that *cfa is set with END.
enum qut_eval_result qut_rule_eval(const struct qut_arch *arch, const struct qut_rule *rule,
                                   const struct qut_frame_regs *frame, qut_read_word read, void *context,
                                   struct qut_frame_regs *caller, uint64_t *cfa);

#endif
