// SPDX-License-Identifier: Apache-2.0
// Text from a trace as text of a page, whatever is in it.
#ifndef TRACER_REPORT_HTML_H
#define TRACER_REPORT_HTML_H

#include "tracer/export/sink/sink.h"

// Also good inside a quoted attribute. What is no UTF-8, and control characters, become U+FFFD.
void report_html_text(struct sink *sink, const char *text);
// 1234567 as "1,234,567".
void report_html_count(struct sink *sink, uint64_t value);
// 1234567890 as "1.235 s".
void report_html_time(struct sink *sink, uint64_t time_ns);

#endif
