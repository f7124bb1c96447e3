// SPDX-License-Identifier: Apache-2.0
// A recording that still grows: its file, and beside it the parts of further processes (FILE.parts/), which are put
// behind it only when it ends.
#ifndef TRACER_TOP_GROWING_H
#define TRACER_TOP_GROWING_H

#include "base/error.h"
#include "tracer/trace/trace_data.h"

// All that is there now, as one trace. 0, or -1 with *error filled; BASE_ERR_TRUNCATED: nothing is there yet.
int top_growing_read(const char *path, struct trace *trace, struct base_error *error);

// Removes the file, its parts, and the folder that they are in.
void top_growing_remove(const char *directory, const char *path);

#endif
