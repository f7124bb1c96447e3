// SPDX-License-Identifier: Apache-2.0
#ifndef TESTS_REPORT_TRACES_H
#define TESTS_REPORT_TRACES_H

#include "tracer/trace/trace.h"

// "golden", "damaged" (the same, of which a chunk could not be read), "empty", a number of
// records, or "noisy-" and that (whose times are as uneven as real ones). Returns 0, or
// -1: none of these. For golden_free.
int make_trace(const char *what, struct trace *trace);

#endif
