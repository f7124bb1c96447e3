// SPDX-License-Identifier: Apache-2.0
#ifndef TESTS_UNIT_TRACER_EXPORT_RANDOM_TRACE_H
#define TESTS_UNIT_TRACER_EXPORT_RANDOM_TRACE_H

#include "tests/support/golden/build.h"

enum { RANDOM_PID = 4000 };

// Of all there is: runs at three levels, intervals, marks, gaps; sorted by time, as traces are, but else without sense.
// The same for the same seed. For build_free.
void random_trace(struct trace *trace, unsigned seed);

#endif
