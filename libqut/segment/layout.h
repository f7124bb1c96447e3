// SPDX-License-Identifier: Apache-2.0
#ifndef QUT_SEGMENT_LAYOUT_H
#define QUT_SEGMENT_LAYOUT_H

#include "libqut/segment/segment.h"

#pragma GCC visibility push(hidden)

// Fills the header's sizes, capacities and sections. 0, or -EINVAL: what was asked for does not fit.
int segment_trace_lay_out(struct qut_trace_header *header, const struct segment_options *options);

#pragma GCC visibility pop

#endif
