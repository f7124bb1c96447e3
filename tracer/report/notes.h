// SPDX-License-Identifier: Apache-2.0
// Notes of the recorder (struct trace_note), summed up over the processes.
#ifndef TRACER_REPORT_NOTES_H
#define TRACER_REPORT_NOTES_H

#include "tracer/export/sink/sink.h"
#include "tracer/trace/trace_data.h"

// Whether something is among them that means that data are missing: ticks that were lost, threads without any, ...
bool report_notes_tell_loss(const struct trace *trace);
// The same in words, behind what was said before (*separator); "" before the first.
void report_notes_verdict(struct sink *sink, const struct trace *trace, const char **separator);
// A sentence on ticks, where they were counted: " Of 250 ticks due, ..."
void report_notes_ticks(struct sink *sink, const struct trace *trace);
// All of them, as tables.
void report_notes_tables(struct sink *sink, const struct trace *trace);
// Of recordings from outside: for how long threads were stopped, as a fact; *is_there: there was one.
bool report_notes_stops(const struct trace *trace, uint64_t *median_ns, uint64_t *longest_ns);

#endif
