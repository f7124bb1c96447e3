// SPDX-License-Identifier: Apache-2.0
// Between the files of this folder.
#ifndef QUT_SAMPLE_SAMPLING_H
#define QUT_SAMPLE_SAMPLING_H

#include <qut/sample.h>

#pragma GCC visibility push(hidden)

// ---- metrics.c

// Those that the open trace wants; NULL: none. `own`: those that the caller brings, or NULL. Signal-safe.
const uint64_t *qut_sample_measure(uint64_t metrics[QUT_METRIC_COUNT], const uint64_t *own);

// ---- sync.c

void qut_sync_begin(uint64_t interval_ns);
void qut_sync_end(void);
// In a tick: says at the next sync point that it is due, if it is. Signal-safe.
void qut_sync_tick(void);

#pragma GCC visibility pop

#endif
