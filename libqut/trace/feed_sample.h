// SPDX-License-Identifier: Apache-2.0
// A sample's second half: what comes after the walk.
#ifndef QUT_TRACE_FEED_SAMPLE_H
#define QUT_TRACE_FEED_SAMPLE_H

#include <stdbool.h>

#include <qut/trace.h>

#pragma GCC visibility push(hidden)

// What the calling thread's walk gave, which has just ended: qut_backtrace's or qut_backtrace_context's (then
// is_interrupted). Frames with numbers below flag_count have flags (enum qut_frame_flag), others are plain callers.
// Returns enum qut_stored. Signal-safe.
int feed_trace_store_walk(const uintptr_t *pcs, size_t count, const uint8_t *flags, size_t flag_count,
                          const struct qut_end *end, bool is_interrupted, const struct qut_event *event);

// Sampling's (libqut/sample), signal-safe:

// As qut_trace_sample of an interrupted thread for which the kernel works: with a frame for that, innermost. Returns
// enum qut_stored.
int feed_trace_sample_in_kernel(const void *ucontext, const struct qut_event *event, uint32_t kernel_code);
// A sample of no frame of the thread's: it stands for what ticks took themselves.
int feed_trace_sample_own(const struct qut_event *event);
// qut_trace_skip and, where total is one of those, 1 more of it and `amount` more of the one behind it: in one go.
// False: the hit is no sample, which qut_sync_hit passes on.
bool feed_trace_throttle(uint32_t total, uint64_t amount);
// The same sums without a hit.
void feed_trace_add_both(uint32_t total, uint64_t amount);
// The metrics that the open trace wants, as a mask; 0: no trace is open. Fills in those that the trace knows itself.
uint32_t feed_trace_own_metrics(uint64_t metrics[QUT_METRIC_COUNT]);
// The node of the sample that the caller has just stored, which it gave that time; 0: it is not known.
uint32_t feed_trace_node_at(uint64_t time_ns);
bool feed_trace_is_open(void);

#pragma GCC visibility pop

#endif
