// SPDX-License-Identifier: Apache-2.0
#include "tracer/traced/open_calls.h"

#include <string.h>

enum { STACK_BYTES = 8 << 20 }; // slots that are farther apart are of different stacks

void traced_open_drop(struct traced_open_calls *open, struct traced_open_call *call, traced_open_closed_fn *closed,
                      void *context)
{
    const size_t behind = (size_t)(open->items + open->count - (call + 1));
    closed(context, call);
    memmove(call, call + 1, behind * sizeof *call);
    open->count--;
}

void traced_open_close_inner(struct traced_open_calls *open, uint64_t slot, traced_open_closed_fn *closed,
                             void *context)
{
    for (size_t i = open->count; i-- > 0;) {
        const uint64_t inner = open->items[i].slot;
        if (inner < slot && slot - inner < STACK_BYTES)
            traced_open_drop(open, &open->items[i], closed, context);
        else if (inner >= slot && inner - slot < STACK_BYTES)
            break;
    }
}

struct traced_open_call *traced_open_at(const struct traced_open_calls *open, uint64_t slot)
{
    for (size_t i = open->count; i-- > 0;)
        if (open->items[i].slot == slot)
            return &open->items[i];
    return NULL;
}

struct traced_open_call *traced_open_add(struct traced_open_calls *open, const struct qut_calls_event *event)
{
    struct traced_open_call *call = BASE_ADD(open);
    if (call)
        *call = (struct traced_open_call){
            .event = *event, .slot = qut_calls_word_slot(event->word), .id = qut_calls_word_id(event->word)};
    return call;
}
