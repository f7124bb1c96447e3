// SPDX-License-Identifier: Apache-2.0
// A trace as one HTML page that needs nothing else: no network, no other file. Losses are plain text at its top, there
// without scripts; the rest is drawn by tracer/report/page from packed columns (pack.h says how they are laid out).
#ifndef TRACER_REPORT_REPORT_H
#define TRACER_REPORT_REPORT_H

#include "tracer/analysis/selection.h"
#include "tracer/export/sink/sink.h"
#include "tracer/names/names.h"
#include "tracer/trace/trace_data.h"

// Of a selection; what was lost, and how far it can be believed, is told of the whole. Returns 0, or -1 with *error
// filled. What goes wrong with writing is the sink's.
int report_write(const struct selection *selection, const struct names *names, struct sink *sink,
                 struct base_error *error);

#endif
