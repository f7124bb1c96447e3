// SPDX-License-Identifier: Apache-2.0
// Where the traces of a file begin: one behind the other, each with a header of its own.
#ifndef TRACER_TRACE_FILE_PARTS_H
#define TRACER_TRACE_FILE_PARTS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "tracer/trace/trace_memory.h"

struct file_part {
    size_t offset, size;
};
// All parts (struct file_part) that count. False: no memory. Blocks are not looked into: where they go wrong, the next
// header that is good is looked for. Of a part and a whole one that takes its place the latter counts; else the former.
bool trace_parts_find(struct trace_vector *parts, const uint8_t *bytes, size_t size);

#endif
