// SPDX-License-Identifier: Apache-2.0
// Words by index, as .qtrace files have nodes and raw pcs: sorted by index, the distances between indices and each of
// the words' eight bytes in a column of its own. Columns of like things pack better than words do.
#ifndef TRACER_TRACE_FILE_COLUMNS_H
#define TRACER_TRACE_FILE_COLUMNS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/cursor_inline.h"

enum { COLUMNS_COUNT_MAX = 1 << 17 }; // in one block
// Room for so many.
static inline size_t trace_columns_bound(size_t count)
{
    return 8 + count * (8 + 5);
}
// Returns the size. Indices ascend, and none is 0.
size_t trace_columns_write(uint8_t *to, const uint32_t *indices, const uint64_t *words, size_t count);
// Puts words where they belong; one that is not 0 already is written over. False: malformed; what was read till then is
// in. *end grows to what is behind the last index that was met.
bool trace_columns_read(struct base_bytes bytes, uint64_t *words, size_t capacity, size_t *end);

// An array of equal structures by planes: the first bytes of all, then the second ones, ... What is the same in all of
// them stands side by side. What is read from has count * item_bytes.
void trace_planes_write(uint8_t *to, const void *items, size_t count, size_t item_bytes);
void trace_planes_read(void *items, const uint8_t *from, size_t count, size_t item_bytes);

#endif
