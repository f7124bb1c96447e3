// SPDX-License-Identifier: Apache-2.0
// What the page says first, in plain HTML: what was lost, and what was recorded.
#ifndef TRACER_REPORT_SUMMARY_H
#define TRACER_REPORT_SUMMARY_H

#include "tracer/export/sink/sink.h"
#include "tracer/names/names.h"
#include "tracer/trace/trace_data.h"

// 0, or -1 without memory.
int report_summary(struct sink *sink, const struct trace *trace, const struct names *names);

#endif
