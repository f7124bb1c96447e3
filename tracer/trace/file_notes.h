// SPDX-License-Identifier: Apache-2.0
// The contents of a NOTES block (formats/qut_trace_file.h).
#ifndef TRACER_TRACE_FILE_NOTES_H
#define TRACER_TRACE_FILE_NOTES_H

#include "qutc/base/cursor.h"
#include "tracer/trace/file_write.h"
#include "tracer/trace/memory.h"
#include "tracer/trace/trace.h"

// Notes that are too long, or too many, are cut. Nothing is written where there are none.
int file_notes_write(struct trace_file *file, const struct trace_note *notes, size_t count, struct qutc_error *error);

// Adds them to *to (struct trace_note), each name once, the last one. False: malformed; or no memory, *no_memory set.
bool file_notes_read(struct qutc_bytes contents, struct trace_vector *to, bool *no_memory);

#endif
