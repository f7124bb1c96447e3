// SPDX-License-Identifier: Apache-2.0
// What is stated held against what the code does: at each instruction of a function that can be followed on all its
// ways, whether the stated rule gives the caller.
#ifndef QUTC_CODE_COMPARE_H
#define QUTC_CODE_COMPARE_H

#include "qutc/code/follow.h"
#include "qutc/code/rule.h"

struct code_difference { // an instruction
    uint32_t pc, end;    // relative to the text
    uint32_t stated;     // rule
    uint32_t followed;   // rule; CFI_RULE_HOLE_ID: the code says that the stated one is wrong, not what is true
    uint8_t reg;         // what differs: QUT_NO_REGISTER the CFA, else a register
};

struct code_compared { // a function
    const struct code_function *function;
    const struct code_walked *walked;
    uint64_t agree, unjudged; // instructions
    uint64_t unstated;        // ... for which nothing exact is stated
    const struct code_difference *differences;
    size_t count;
};

// Told of each function that is wanted, once, by address in passes. One that was not followed has no differences.
// False: stop, no memory.
struct code_comparison {
    bool (*is_wanted)(void *context, uint32_t pc); // NULL: all are
    bool frames_only; // calls keep no register: the CFA and the return address are compared
    bool (*tell)(void *context, const struct code_compared *compared);
    void *context;
};

// rules gets what the code says. [allocates; any threads]. -1: no memory, or the architecture's code is not followed.
int code_compare(const struct input_image *image, uint64_t text_start, uint64_t text_end,
                 const struct cfi_row_list *rows, struct cfi_rule_set *rules, const struct code_comparison *comparison,
                 struct base_error *error);

#endif
