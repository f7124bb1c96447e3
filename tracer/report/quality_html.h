// SPDX-License-Identifier: Apache-2.0
// How far the trace can be believed, on the page: what tracer/export/quality.h says, and no other words.
#ifndef TRACER_REPORT_QUALITY_HTML_H
#define TRACER_REPORT_QUALITY_HTML_H

#include "tracer/export/quality.h"
#include "tracer/export/sink/sink.h"

// Nothing lost is not enough: whether something is not good.
bool report_quality_is_bad(const struct quality *quality);
// Behind the verdict, where something is not good: the line of quality.
void report_quality_tell(struct sink *sink, const struct quality *quality);
// What helps, as a list; nothing where all is good.
void report_quality_advice(struct sink *sink, const struct quality *quality);
// The shares, as entries of a list of facts.
void report_quality_facts(struct sink *sink, const struct quality *quality);

#endif
