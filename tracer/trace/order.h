// SPDX-License-Identifier: Apache-2.0
// Stretches of records put in the order of their time; equal times stay as they are. False: no memory.
#ifndef TRACER_TRACE_ORDER_H
#define TRACER_TRACE_ORDER_H

#include "tracer/trace/trace_data.h"

bool trace_order_samples(struct trace_sample *all, size_t first, size_t count);
bool trace_order_marks(struct trace_mark *all, size_t first, size_t count);
bool trace_order_gaps(struct trace_gap *all, size_t first, size_t count);

#endif
