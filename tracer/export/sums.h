// SPDX-License-Identifier: Apache-2.0
// Weights of one thread's samples, added up by node and kind: what formats without time need.
#ifndef TRACER_EXPORT_SUMS_H
#define TRACER_EXPORT_SUMS_H

#include "base/hash_index.h"
#include "base/vector.h"
#include "tracer/analysis/selection.h"
#include "tracer/export/weight_words.h"

struct sum {
    uint32_t node;
    uint32_t kind;
    uint64_t of[EXPORT_WEIGHT_COUNT];
};

struct sums {
    BASE_VECTOR(struct sum);
    struct base_hash_index index; // by node and kind
};

// Of `thread`, in the order in which they are met; the sums of another thread that were there are gone. by_kind false:
// kind is 0 in all. Returns 0, or -1 without memory. `sums` begins as zeroes.
int export_sums_of_thread(struct sums *sums, const struct selection *selection, const struct trace_thread *thread,
                          bool by_kind);
void export_sums_free(struct sums *sums);

#endif
