// SPDX-License-Identifier: Apache-2.0
// Files of many hosts and runs as one trace, by a merger: after trace_merge_begin, each file, then the end. Its times
// are CLOCK_REALTIME's: the hosts' clocks say what was at the same time. No function prints; all allocate. Threads: one
// at a time for each merger.
#ifndef TRACER_TRACE_TOGETHER_TOGETHER_H
#define TRACER_TRACE_TOGETHER_TOGETHER_H

#include "tracer/trace/merge.h"

// A whole trace, as trace_read gave it, with its path and labels. -1, *error filled: no memory, too many of something,
// or it is of a recording that has been added. It may only be freed afterwards: its exact calls are the merger's.
int together_add(struct merger *merger, struct trace *recording, const struct trace_recording *told,
                 struct base_error *error);
// After one at least. *trace stands in merger->memory then, which is its own.
int together_end(struct merger *merger, struct trace *trace, struct base_error *error);

#endif
