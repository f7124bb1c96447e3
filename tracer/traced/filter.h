// SPDX-License-Identifier: Apache-2.0
// Leaves out calls that were shorter than asked for, with all that was called by them, while their events come: a call
// is kept back until it has been long enough, and forgotten if it ends before. Those that are written are whole: calls
// around a written one are written, too, as they are longer.
#ifndef TRACER_TRACED_FILTER_H
#define TRACER_TRACED_FILTER_H

#include "tracer/traced/open_calls.h"

struct traced_filter {             // of one thread; zeros at the beginning
    struct traced_open_calls open; // kept are those in the file
    size_t written;                // so many of these, those before the others
    uint64_t left_out;
};

// Takes `count` events, in place: those that are to be written now are put into `out`, which has to be empty. `shorter`
// is told the function of each call that is left out. False: no memory.
struct traced_filter_out {
    BASE_VECTOR(struct qut_calls_event);
};
bool traced_filter(struct traced_filter *filter, const struct qut_calls_event *events, size_t count,
                   uint64_t least_ticks, struct traced_filter_out *out,
                   void (*shorter)(void *context, uint32_t function), void *context);
// The end: nothing more comes. What was open for less than that is left out, too.
bool traced_filter_end(struct traced_filter *filter, uint64_t now_ticks, uint64_t least_ticks,
                       struct traced_filter_out *out, void (*shorter)(void *context, uint32_t function), void *context);
void traced_filter_free(struct traced_filter *filter);

#endif
