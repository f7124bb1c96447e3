// SPDX-License-Identifier: Apache-2.0
// Leaves out calls that were shorter than asked for of their function, with what was called by them and was too short
// as well, while their events come: a call is kept back until it has been long enough, and forgotten if it ends before.
// Those that are written are whole: calls around a written one are written, too.
#ifndef TRACER_TRACED_FILTER_H
#define TRACER_TRACED_FILTER_H

#include "tracer/traced/open_calls.h"

struct traced_filter {             // of one thread; zeros at the beginning
    struct traced_open_calls open; // kept are those in the file
    size_t written;                // so many of these, those before the others
    uint64_t first_due_ticks;      // none of the others is long enough before
    uint64_t left_out;
};

struct traced_filter_options {
    uint64_t (*least_ticks)(const void *context, uint32_t function); // 0: each call of it is written
    void (*shorter)(void *context, uint32_t function);               // told of each call that is left out
    void *context;
};

// Takes `count` events, in place: those that are to be written now are put into `out`, which has to be empty. False: no
// memory.
struct traced_filter_out {
    BASE_VECTOR(struct qut_calls_event);
};
bool traced_filter(struct traced_filter *filter, const struct traced_filter_options *options,
                   const struct qut_calls_event *events, size_t count, struct traced_filter_out *out);
// The end: nothing more comes. What was not open for long enough is left out, too.
bool traced_filter_end(struct traced_filter *filter, const struct traced_filter_options *options, uint64_t now_ticks,
                       struct traced_filter_out *out);
void traced_filter_free(struct traced_filter *filter);

#endif
