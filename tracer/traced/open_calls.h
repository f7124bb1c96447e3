// SPDX-License-Identifier: Apache-2.0
// The calls of one thread that are open, in the order in which they were entered, on whatever stacks: what those who
// leave some of them out keep. An event of a thread closes what lies further in on its stack (formats/qut_calls.md).
#ifndef TRACER_TRACED_OPEN_CALLS_H
#define TRACER_TRACED_OPEN_CALLS_H

#include "base/vector.h"
#include "formats/qut_calls.h"

struct traced_open_call {
    struct qut_calls_event event; // the enter
    uint64_t slot;
    uint32_t id;
    bool is_caller, is_kept; // their keeper's
    uint64_t due_ticks;      // likewise: from then on it is long enough
};

struct traced_open_calls { // zeros at the beginning
    BASE_VECTOR(struct traced_open_call);
};

// Told of each that is dropped.
typedef void traced_open_closed_fn(void *context, const struct traced_open_call *call);

// Drops those further in than `slot` on its stack.
void traced_open_close_inner(struct traced_open_calls *open, uint64_t slot, traced_open_closed_fn *closed,
                             void *context);
// NULL: there is none.
struct traced_open_call *traced_open_at(const struct traced_open_calls *open, uint64_t slot);
void traced_open_drop(struct traced_open_calls *open, struct traced_open_call *call, traced_open_closed_fn *closed,
                      void *context);
// NULL: no memory. What it answers is good until the next change.
struct traced_open_call *traced_open_add(struct traced_open_calls *open, const struct qut_calls_event *event);

#endif
