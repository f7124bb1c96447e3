// SPDX-License-Identifier: Apache-2.0
// Rows for code that nothing describes: what following it says. The last of all sources.
#ifndef QUTC_CODE_FILL_H
#define QUTC_CODE_FILL_H

#include "base/error.h"
#include "qutc/cfi/row_list.h"
#include "qutc/cfi/rule_set.h"
#include "qutc/input/image.h"

// Why a function, or the rest of it, is not followed.
enum code_outcome {
    CODE_FOLLOWED = 0,
    CODE_UNPROVEN,        // no way returns, and nothing calls it: what its caller left on the stack is not known
    CODE_BAD_INSTRUCTION, // one that is not known, or data
    CODE_BAD_RETURN,      // returns to, or with, what is not its caller's
    CODE_BAD_LEAVE,       // goes on in another function with something left on the stack
    CODE_OPEN_JUMP,       // a jump whose targets are not known
    CODE_TOO_LARGE,
    CODE_OUTCOME_END,
};
const char *code_outcome_name(enum code_outcome outcome);

enum code_fill_extent {
    CODE_FILL_NOTHING = 0,
    CODE_FILL_IF_MUCH, // as the next one, but only where that is much; of other files no code is read
    CODE_FILL_BOUNDED, // until too much was looked at in vain
    CODE_FILL_ALL,     // however long it takes
};

struct code_fill_counts {
    uint64_t functions; // that begin in holes
    uint64_t followed;  // of them
    uint64_t outcomes[CODE_OUTCOME_END];
    uint64_t doubtful;   // instructions of followed ones behind calls of which nothing shows that they come back: holes
    uint64_t data_bytes; // among code: what followed code loads from beside itself or jumps by, which has no rule
    bool is_cut;         // too much was looked at in vain, and the rest not at all
};

// Whether what code says comes before what is stated: that code cannot be unwound, or a rule for a function's body
// alone.
bool code_fill_refines(const struct qut_rule *stated);

// Rows for the holes among `stated`, and for what code_fill_refines (and, of functions that reach further, for what is
// stated already: that is passed over where lists are merged). A function whose code contradicts what is stated for its
// calls has none. None where the architecture's code is not followed, or where holes are padding.
int code_fill(const struct input_image *image, uint64_t text_start, uint64_t text_end, enum code_fill_extent extent,
              const struct cfi_row_list *stated, struct cfi_rule_set *rules, struct cfi_row_list *rows,
              struct code_fill_counts *counts, struct base_error *error);

#endif
