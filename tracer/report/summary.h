// SPDX-License-Identifier: Apache-2.0
// What the page says first, in plain HTML: what was lost, and what was recorded.
#ifndef TRACER_REPORT_SUMMARY_H
#define TRACER_REPORT_SUMMARY_H

#include "tracer/export/sink/sink.h"
#include "tracer/trace/trace_data.h"

void report_summary(struct sink *sink, const struct trace *trace);

#endif
