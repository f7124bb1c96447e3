// SPDX-License-Identifier: Apache-2.0
// A trace made by hand, put into a segment by the product's own writer.
#ifndef TESTS_SUPPORT_GOLDEN_SEGMENT_H
#define TESTS_SUPPORT_GOLDEN_SEGMENT_H

#include <stdbool.h>

#include "tracer/trace/trace_data.h"

enum { GOLDEN_MERGE_GAP_NS = 2000000 };

// At `path`, which is in a memory file system. Times become units of 1,024 ns. Not said: what was overwritten, damaged,
// or under way; gaps are where hits were lost. With `closes` it is closed at trace->end_ns, else left behind.
// Returns 0, or -errno.
int golden_write(const struct trace *trace, const char *path, bool closes);

#endif
