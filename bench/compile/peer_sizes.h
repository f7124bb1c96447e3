// SPDX-License-Identifier: Apache-2.0
// What other formats would need for the rows of one table: computed from their specifications, not with their tools.
// They keep less than we do: CFA, return address and frame pointer only. Rows that differ in other registers are one
// row here, as in their producers. x86-64 only.
#ifndef BENCH_COMPILE_PEER_SIZES_H
#define BENCH_COMPILE_PEER_SIZES_H

#include "libqut/runtime/table.h"
#include "qutc/check/cfi_walk.h"

struct peer_sizes {
    uint64_t rows;        // equal neighbours joined, gaps below 16 bytes taken for padding and joined to what is before
    uint64_t sframe_v1;   // 28 bytes + 17 per function + its rows
    uint64_t sframe_v2;   // 28 bytes + 20 per function + its rows
    uint64_t orc;         // 6 + 4 bytes a row (without the index that Linux adds when it boots)
    uint64_t otel;        // OpenTelemetry's eBPF profiler: 4 bytes a row, 24 a 64 KiB page, 12 a distinct rule
    uint64_t otel_merged; // the same with its merging of rows that differ by one push or pop
};

// The index gives the bounds of functions, which SFrame stores and our tables do not.
int bench_peer_sizes(const struct qut_table *table, const struct check_walk_index *functions, struct peer_sizes *sizes,
                     struct base_error *error);

#endif
