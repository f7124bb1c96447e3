// SPDX-License-Identifier: Apache-2.0
// The same work as pure_decode, with every read bounded by libqutc's cursor: the difference is what bounds checks cost.
#ifndef BENCH_COMPILE_CHECKED_DECODE_H
#define BENCH_COMPILE_CHECKED_DECODE_H

#include <stdbool.h>

#include "bench/compile/pure_decode.h"

// False where a read left its record, or a record is of a kind that pure_decode does not know: then pure_decode, which
// checks nothing, must not see the section. Else the counts are equal.
bool checked_decode(const uint8_t *eh_frame, size_t size, struct pure_decode_counts *counts);

#endif
