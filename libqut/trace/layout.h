// SPDX-License-Identifier: Apache-2.0
#ifndef QUT_TRACE_LAYOUT_H
#define QUT_TRACE_LAYOUT_H

#include "libqut/trace/segment.h"

#pragma GCC visibility push(hidden)

// Fills the header's sizes, capacities and sections. 0, or -EINVAL: what was asked for does not fit.
int qut_trace_lay_out(struct qut_trace_header *header, const struct qut_segment_options *options);

#pragma GCC visibility pop

#endif
