// SPDX-License-Identifier: Apache-2.0
// Writes the contents of a NOTES block (formats/qut_trace_file.h).
#ifndef TRACER_COLLECT_NOTES_WRITE_H
#define TRACER_COLLECT_NOTES_WRITE_H

#include "tracer/collect/file_write.h"
#include "tracer/trace/trace_data.h"

// Notes that are too long, or too many, are cut. Nothing is written where there are none.
int collect_file_notes_write(struct trace_file *file, const struct trace_note *notes, size_t count,
                             struct base_error *error);

#endif
