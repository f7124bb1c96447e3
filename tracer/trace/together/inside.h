// SPDX-License-Identifier: Apache-2.0
// What together.c asks of together_calls.c.
#ifndef TRACER_TRACE_TOGETHER_INSIDE_H
#define TRACER_TRACE_TOGETHER_INSIDE_H

#include "tracer/trace/together/together.h"

struct together_calls { // of a recording that was just added
    uint32_t index;     // which one it is
    uint64_t by_ns;     // what its times are shifted by
    size_t first_thread;
};

// Its exact calls are no longer its own, and tell of the whole's threads and nodes. False: no memory.
bool together_calls_add(struct merger *merger, struct trace *recording, const struct together_calls *added);
// The whole has them, and its threads their order.
void together_calls_end(struct merger *merger, struct trace *trace);

// 0 and UINT64_MAX are no times: always, and still.
static inline void together_shift(uint64_t *time_ns, uint64_t by_ns)
{
    if (*time_ns && *time_ns != UINT64_MAX)
        *time_ns += by_ns;
}

#endif
