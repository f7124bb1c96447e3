// SPDX-License-Identifier: Apache-2.0
// The yardstick of compile speed: every CFA instruction of an .eh_frame decoded and executed on a minimal state, and
// nothing kept. Written for this purpose alone, without bounds checks: for sections that are known to be well formed.
#ifndef BENCH_COMPILE_PURE_DECODE_H
#define BENCH_COMPILE_PURE_DECODE_H

#include <stddef.h>
#include <stdint.h>

struct pure_decode_counts {
    uint64_t fdes, instructions, rows;
    uint64_t checksum; // of all rows, so that nothing can be optimised away
};

void pure_decode(const uint8_t *eh_frame, size_t size, struct pure_decode_counts *counts);

#endif
