// SPDX-License-Identifier: Apache-2.0
// Applies a rule to a frame: registers in, caller's registers out. Signal-safe, allocates nothing, never blocks.
#ifndef QUT_RUNTIME_RULE_EVAL_H
#define QUT_RUNTIME_RULE_EVAL_H

#include <stdbool.h>
#include <stdint.h>

#include "formats/qut_rule.h"
#include "libqut/arch/arch.h"

enum { RUNTIME_VECTOR_BYTES = 0xfd }; // asked for like a register: how many bytes a vector register has

// Reads one word of the walked stack; false where it cannot be read.
typedef bool (*runtime_read_word)(void *context, uint64_t address, uint64_t *value);

enum runtime_eval_result {
    RUNTIME_EVAL_OK = 0,
    RUNTIME_EVAL_END,         // the outermost frame: it has no return address
    RUNTIME_EVAL_NO_RULE,     // hole or refused
    RUNTIME_EVAL_NO_REGISTER, // the rule needs a register that is not known
    RUNTIME_EVAL_BAD_MEMORY,
};

// *caller gets pc (the return address as found, not stripped, not adjusted), sp and the tracked registers. `cfa` may be
// NULL. On anything but OK *caller holds nothing of use, except that *cfa is set with END.
enum runtime_eval_result runtime_rule_eval(const struct arch *arch, const struct qut_rule *rule,
                                           const struct arch_frame_regs *frame, runtime_read_word read, void *context,
                                           struct arch_frame_regs *caller, uint64_t *cfa);

#endif
