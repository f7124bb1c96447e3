// SPDX-License-Identifier: Apache-2.0
// Which files a page is made of, as a table; of one as it was recorded there is none.
#ifndef TRACER_REPORT_RECORDINGS_H
#define TRACER_REPORT_RECORDINGS_H

#include "tracer/export/sink/sink.h"
#include "tracer/trace/trace_data.h"

void report_recordings(struct sink *sink, const struct trace *trace);

#endif
