// SPDX-License-Identifier: Apache-2.0
// A function is followed before all that it calls is: what those were taken for is kept, and the function followed once
// more if they turn out to be something else.
#ifndef QUTC_CODE_SETTLE_H
#define QUTC_CODE_SETTLE_H

#include "qutc/code/inside.h"

struct code_unsettled {
    uint32_t pc;
    size_t first_assumed, assumed_count; // of `assumed`
    size_t first_span, end_span;         // until spans are sorted the next time
    uint32_t doubtful;                   // instructions without rules
    bool is_gap;                         // only following it said that it is one
    bool is_in_doubt;                    // more may be known behind calls when what it calls is known
    bool is_gone;                        // and its spans are to be: followed again, or false
};

struct code_settling {
    struct code_follower *f;
    bool *is_contradicted;                        // set while a function is followed: what was found of it is not true
    uint64_t *doubtful;                           // instructions without rules, of all functions
    BASE_VECTOR(struct code_unsettled) functions; // spans name them as their owners, by their index + 1
    size_t first_new;                             // of them: not settled yet
    BASE_VECTOR(struct code_assumption) assumed;
};

// Behind code_follow, of a function that is followed; its spans are those from first_span on. 0 or -1.
int code_settle_later(struct code_settling *settling, const struct code_function *function, size_t first_span,
                      const struct code_walked *walked);

// Until nothing that rules rest on is otherwise. What still is then has no spans. Spans move. 0 or -1.
int code_settle(struct code_settling *settling);

void code_settling_free(struct code_settling *settling);

#endif
