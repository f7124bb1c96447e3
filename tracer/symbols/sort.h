// SPDX-License-Identifier: Apache-2.0
// Sorting records by a 64-bit number at their start: a library can have a million symbols, and qsort would take longer
// than everything else that is done with them.
#ifndef TRACER_SYMBOLS_SORT_H
#define TRACER_SYMBOLS_SORT_H

#include <stddef.h>

// Stable. Returns 0, or -1 without memory; the records are untouched then.
int symbols_sort_by_first_u64(void *records, size_t count, size_t record_bytes);

#endif
