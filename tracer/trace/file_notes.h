// SPDX-License-Identifier: Apache-2.0
// Reads the contents of a NOTES block (formats/qut_trace_file.h).
#ifndef TRACER_TRACE_FILE_NOTES_H
#define TRACER_TRACE_FILE_NOTES_H

#include "base/cursor_inline.h"
#include "formats/qut_trace_file.h"
#include "tracer/trace/trace_data.h"
#include "tracer/trace/trace_memory.h"

// Adds them to *to (struct trace_note), each name once, the last one. False: malformed; or no memory, *no_memory set.
bool trace_file_notes_read(struct base_bytes contents, struct trace_vector *to, bool *no_memory);

#endif
