// SPDX-License-Identifier: Apache-2.0
// Keeps calls that are within a call of chosen functions, and not nested deeper than asked for. Decided where events
// are read, of one thread's in the order in which it wrote them: exact, as long as none is lost and no coroutine goes
// on in another thread.
#ifndef TRACER_TRACED_SCOPE_H
#define TRACER_TRACED_SCOPE_H

#include "tracer/traced/open_calls.h"

struct traced_scope { // of one thread; zeros at the beginning
    struct traced_open_calls open;
    uint32_t callers; // of them
    uint32_t kept;
};

struct traced_scope_options {
    bool has_callers; // else all calls are within
    bool (*is_caller)(const void *context, uint32_t function);
    void (*left_out)(void *context, uint32_t function); // told of each call that is not kept
    void *context;
    uint32_t depth; // so many calls that lie in each other are kept; 0: all
};

// Leaves in `events` those that are kept, in their order. How many; -1: no memory.
ptrdiff_t traced_scope(struct traced_scope *scope, const struct traced_scope_options *options,
                       struct qut_calls_event *events, size_t count);
void traced_scope_free(struct traced_scope *scope);

#endif
