// SPDX-License-Identifier: Apache-2.0
// A file that is finished, written once more: only what counts, each table in one piece, nodes in the order of their
// tree, chunks in that of their writers. What was written while samples came repeats itself: open chunks, states of
// threads, headers.
#ifndef TRACER_COLLECT_SETTLE_H
#define TRACER_COLLECT_SETTLE_H

#include "tracer/collect/file_write.h"
#include "tracer/trace/trace_memory.h"

// Puts the settled form in the place of *file, which ends with *trailer. At every moment the file holds one of the two
// whole: the new one is written behind the old one, and counts from its trailer on; then it is copied to the beginning,
// and the rest is cut off. Where that cannot be done (no room, damage, no gain, no memory) the file stays as it is:
// that is no failure. *trailer becomes what stands in the file. Takes of that memory what it needs; `scratch` has
// QUT_TRACE_FILE_BLOCK_BYTES_MAX.
void collect_settle(struct trace_file *file, struct qut_trace_file_trailer *trailer, struct trace_memory *memory,
                    uint8_t *scratch);

#endif
