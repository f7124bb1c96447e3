// SPDX-License-Identifier: Apache-2.0
// Where the traces of a file begin: one behind the other, each with a header of its own.
#ifndef TRACER_TRACE_FILE_PARTS_H
#define TRACER_TRACE_FILE_PARTS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "tracer/trace/trace_memory.h"

// Offsets (size_t) of all parts, the first 0. False: no memory. Blocks are not looked into: where they go wrong, the
// next header that is good is looked for.
bool trace_parts_find(struct trace_vector *offsets, const uint8_t *bytes, size_t size);

#endif
